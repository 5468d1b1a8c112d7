"""Private functions that accompany a module: C library functions applied lane by lane, and the error flag."""

from typing import Final

from tenferro_cpu.native.codegen.builder._types import LLVM_TYPES

INVALID: Final = """
define private void @invalid() noinline cold nounwind {
  %p = alloca double
  store volatile double 0.0, ptr %p
  %zero = load volatile double, ptr %p
  %nothing = fdiv double %zero, %zero
  store volatile double %nothing, ptr %p
  ret void
}"""


def declaration(function: str, kind: str, arity: int) -> str:
    """Declaration of a C library function whose operands and result have one type."""
    t = LLVM_TYPES[kind]
    return f"declare {t} @{function}({', '.join([t] * arity)})"


def lane_loop(name: str, function: str, kind: str, lanes: int, arity: int) -> str:
    """A private function that calls a scalar C function in the lanes of a mask."""
    t = LLVM_TYPES[kind]
    v = f"<{lanes} x {t}>"
    arguments = ", ".join(f"{v} %x{k}" for k in range(arity))
    takes = "\n".join(f"  %a{k} = extractelement {v} %x{k}, i32 %i" for k in range(arity))
    typed = ", ".join(f"{t} %a{k}" for k in range(arity))
    return f"""
define private {v} @{name}(<{lanes} x i1> %mask, {v} %usual, {arguments}) noinline cold nounwind {{
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %step ]
  %out = phi {v} [ %usual, %entry ], [ %kept, %step ]
  %m = extractelement <{lanes} x i1> %mask, i32 %i
  br i1 %m, label %call, label %step
call:
{takes}
  %y = call {t} @{function}({typed})
  %put = insertelement {v} %out, {t} %y, i32 %i
  br label %step
step:
  %kept = phi {v} [ %out, %loop ], [ %put, %call ]
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, {lanes}
  br i1 %more, label %loop, label %done
done:
  ret {v} %kept
}}"""
