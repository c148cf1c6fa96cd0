"""How everything is said in JSON: one table of operations, its params and results, and their conversion from the domain."""
