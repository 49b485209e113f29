(comment) @above
(decorator) @above

(class_definition name: (identifier) @name body: (_) @body) @definition.type
(function_definition name: (identifier) @name body: (_) @body) @definition.function
(type_alias_statement left: (type (identifier) @name)) @definition.type
(module (expression_statement (assignment left: (identifier) @name right: (_)? @body) @definition.value))
(class_definition body: (block
  (expression_statement (assignment left: (identifier) @name right: (_)? @body) @definition.value)))

(call function: (identifier) @reference)
(call function: (attribute attribute: (identifier) @reference))
(decorator (identifier) @reference)
(decorator (attribute attribute: (identifier) @reference))
(class_definition superclasses: (argument_list (identifier) @reference))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @reference)))
(import_from_statement name: (dotted_name (identifier) @reference .))
(aliased_import name: (dotted_name (identifier) @reference .))
(type (identifier) @reference)
(type (attribute attribute: (identifier) @reference))
(generic_type (identifier) @reference)
(identifier) @reference.capital
