(line_comment) @above
(block_comment) @above

(class_declaration name: (identifier) @name body: (_) @body) @definition.type
(enum_declaration name: (identifier) @name body: (_) @body) @definition.type
(record_declaration name: (identifier) @name body: (_) @body) @definition.type
(interface_declaration name: (identifier) @name body: (_) @body) @definition.interface
(annotation_type_declaration name: (identifier) @name body: (_) @body) @definition.interface
(method_declaration name: (identifier) @name body: (_)? @body) @definition.method
(constructor_declaration name: (identifier) @name body: (_) @body) @definition.method
(compact_constructor_declaration name: (identifier) @name body: (_) @body) @definition.method
(annotation_type_element_declaration name: (identifier) @name) @definition.method
(field_declaration declarator: (variable_declarator name: (identifier) @name value: (_)? @body)) @definition.value
(constant_declaration declarator: (variable_declarator name: (identifier) @name value: (_)? @body)) @definition.value
(enum_constant name: (identifier) @name) @definition.value

(type_identifier) @reference
(method_invocation name: (identifier) @reference)
(method_invocation object: (identifier) @reference.capital)
(field_access object: (identifier) @reference.capital)
(field_access field: (identifier) @reference.capital)
(annotation name: (identifier) @reference)
(marker_annotation name: (identifier) @reference)
(import_declaration (scoped_identifier name: (identifier) @reference))
