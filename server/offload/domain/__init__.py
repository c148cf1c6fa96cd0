"""What a task is: frozen values and pure functions. No I/O, no asyncio, no clock, nothing from outside the standard library."""
