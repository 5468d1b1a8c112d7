"""Programs on several devices: a plan of steps on queues with the waits between them, its verifier, its executor."""
