; Added to the queries for JavaScript.
(class_declaration name: (type_identifier) @name body: (_) @body) @definition.type
(abstract_class_declaration name: (type_identifier) @name body: (_) @body) @definition.type
(class name: (type_identifier) @name body: (_) @body) @definition.type
(interface_declaration name: (type_identifier) @name body: (_) @body) @definition.interface
(type_alias_declaration name: (type_identifier) @name value: (_) @body) @definition.type
(enum_declaration name: (identifier) @name body: (_) @body) @definition.type
(enum_body name: (property_identifier) @name @definition.value)
(enum_assignment name: (property_identifier) @name) @definition.value
(internal_module name: [(identifier) (nested_identifier)] @name body: (_) @body) @definition.module
(module name: [(identifier) (nested_identifier)] @name body: (_) @body) @definition.module
(function_signature name: (identifier) @name) @definition.function
(method_signature name: [(property_identifier) (private_property_identifier)] @name) @definition.method
(abstract_method_signature name: (property_identifier) @name) @definition.method
(property_signature name: (property_identifier) @name) @definition.value
(public_field_definition
  name: [(property_identifier) (private_property_identifier)] @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.method
(public_field_definition
  name: [(property_identifier) (private_property_identifier)] @name value: (_)? @body) @definition.value
(ambient_declaration (lexical_declaration
  (variable_declarator name: (identifier) @name) @definition.value))

(type_identifier) @reference
(extends_clause value: (identifier) @reference)
