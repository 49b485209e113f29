(jsx_opening_element name: (identifier) @reference.capital)
(jsx_self_closing_element name: (identifier) @reference.capital)
