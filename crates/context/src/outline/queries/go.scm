(comment) @above

(function_declaration name: (identifier) @name body: (_)? @body) @definition.function
(method_declaration name: (field_identifier) @name body: (_)? @body) @definition.method
(type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body)) @definition.type
(type_spec name: (type_identifier) @name type: (interface_type) @body) @definition.interface
(type_spec name: (type_identifier) @name) @definition.type
(type_alias name: (type_identifier) @name) @definition.type
(field_declaration name: (field_identifier) @name) @definition.value
(method_elem name: (field_identifier) @name) @definition.method
; Names without their field: of several names only the first is found by it.
(const_spec (identifier) @name) @definition.value
(const_spec (identifier) @name value: (_) @body) @definition.value
(var_spec (identifier) @name) @definition.value
(var_spec (identifier) @name value: (_) @body) @definition.value

; A declaration of one thing begins with its keyword.
(type_declaration . (type_spec name: (type_identifier) @name) .) @definition.type

(type_identifier) @reference
(call_expression function: (identifier) @reference)
(call_expression function: (selector_expression field: (field_identifier) @reference))
(selector_expression field: (field_identifier) @reference.capital)
