"""The rules, one a file; they are discovered, and nobody imports one."""
