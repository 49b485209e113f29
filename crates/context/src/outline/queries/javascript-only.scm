(class_declaration name: (identifier) @name body: (_) @body) @definition.type
(class name: (identifier) @name body: (_) @body) @definition.type
(field_definition
  property: (property_identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.method
(field_definition property: (property_identifier) @name value: (_)? @body) @definition.value
(class_heritage (identifier) @reference)
