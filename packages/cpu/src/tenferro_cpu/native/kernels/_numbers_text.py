"""The text of reading Python's own numbers where an array of a dtype is expected."""

from typing import Final

from tenferro_cpu.native.kernels._body import Body
from tenferro_cpu.native.python._layout import NUMBER

NONE, FLOAT64, FLOAT32, INT64 = range(4)
"""What Python's numbers become."""

NUMBERS: Final = """
@tenferro_float = external global i8
@tenferro_int = external global i8
declare i64 @tenferro_long_as_long(ptr, ptr)
declare double @llvm.fabs.f64(double)
"""


def python_number(b: Body, x: str, slot: str, kind: str, variables: tuple[str, str]) -> None:
    """Write a number that the dtype holds, and go to ``taken``; go to ``refuse`` with all others.

    Args:
        b: the function.
        x: an object.
        slot: where the number goes.
        kind: what it becomes.
        variables: a double, and an integer of 32 bits.
    """
    real_at, overflow = variables
    b.branch(b.same(b.type_of(x), "@tenferro_float"), "float", "no_float")
    b.label("float")
    b.store(b.load(x, NUMBER, "double"), real_at, kind="double")
    b.jump("real")
    b.label("no_float")
    b.require([(b.type_of(x), "@tenferro_int")], "refuse")
    whole = b.call("tenferro_long_as_long", x, overflow, result="i64")
    b.guard(b.get(f"icmp eq i32 {b.load(overflow, kind='i32')}, 0"), "refuse")
    b.store(whole, slot, kind="i64")
    b.branch(b.get(f"icmp eq i64 {kind}, {INT64}"), "taken", "rounded")
    b.label("rounded")
    exact = b.get(f"icmp ult i64 {b.get(f'add i64 {whole}, {2**53}')}, {2**54}")
    b.guard(exact, "refuse")
    b.store(b.get(f"sitofp i64 {whole} to double"), real_at, kind="double")
    b.jump("real")
    b.label("real")
    real = b.load(real_at, kind="double")
    b.store(real, slot, kind="double")
    b.branch(b.get(f"icmp eq i64 {kind}, {FLOAT64}"), "taken", "narrow")
    b.label("narrow")
    b.guard(b.get(f"icmp eq i64 {kind}, {FLOAT32}"), "refuse")
    short = b.get(f"fptrunc double {real} to float")
    b.store(short, slot, kind="float")
    # NumPy warns where a finite number leaves the range.
    away = b.get(f"fsub double {b.get(f'fpext float {short} to double')}, {real}")
    far = b.get(f"call double @llvm.fabs.f64(double {away})")
    b.branch(b.get(f"fcmp oeq double {far}, 0x7FF0000000000000"), "refuse", "taken")
