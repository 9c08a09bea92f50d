"""One grammar of rules, protocols and Lark text."""
