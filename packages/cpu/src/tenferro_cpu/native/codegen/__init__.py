"""From loop nests to machine code: `whole` renders `LoopIR` by `builder` and `operations`, `machine` compiles it."""
