"""The thread policy in machine code: what `Arbiter` does, in a twentieth of the time.

Both functions run with the interpreter's lock held, so each is one step for all Python threads; entries of other
kernels call them directly. The table that they work on is, in 64-bit words: calls inside, open scopes, the Python
thread that is inside (0: several are, or were since the first came), number of libraries, and for each library the
getter, the setter, the number to give back, and whether it is to be given back.
"""

import ctypes
from typing import Any, Final

from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.python._builtin import FASTCALL, NOARGS, builtin, definition
from tenferro_cpu.native.python._interpreter import interpreter
from tenferro_cpu.native.threads import _blas
from tenferro_tensor_core import BackendUnavailableError
from tenferro_tensor_core.forks import new_lock

INSIDE, SCOPES, OWNER, COUNT, FIRST, ROW = 0, 1, 2, 3, 4, 4
MOST_LIBRARIES: Final = 8

TEXT: Final = """
@tenferro_blas_state = external global [36 x i64]
declare i64 @tenferro_long_as_long(ptr, ptr)
declare i64 @tenferro_thread_ident()
@tenferro_none = external global i8

define private void @set(i64 %i, i64 %want, i1 %capped) {
  %base = mul i64 %i, 4
  %at = add i64 %base, 4
  %row = getelementptr i64, ptr @tenferro_blas_state, i64 %at
  %getter = load ptr, ptr %row
  %now32 = call i32 %getter()
  %now = sext i32 %now32 to i64
  %less = call i64 @llvm.smin.i64(i64 %want, i64 %now)
  %count = select i1 %capped, i64 %less, i64 %want
  %same = icmp eq i64 %count, %now
  br i1 %same, label %done, label %change
change:
  %saved = getelementptr i64, ptr %row, i64 3
  %was = load i64, ptr %saved
  %first = icmp eq i64 %was, 0
  br i1 %first, label %save, label %put
save:
  %kept = getelementptr i64, ptr %row, i64 2
  store i64 %now, ptr %kept
  store i64 1, ptr %saved
  br label %put
put:
  %where = getelementptr i64, ptr %row, i64 1
  %setter = load ptr, ptr %where
  %count32 = trunc i64 %count to i32
  call void %setter(i32 %count32)
  br label %done
done:
  ret void
}

define void @enter(i64 %most, i64 %allowed) {
  %inside = load i64, ptr @tenferro_blas_state
  %now = add i64 %inside, 1
  store i64 %now, ptr @tenferro_blas_state
  %owner_at = getelementptr i64, ptr @tenferro_blas_state, i64 2
  %owner = load i64, ptr %owner_at
  %me = call i64 @tenferro_thread_ident()
  %alone = icmp eq i64 %inside, 0
  br i1 %alone, label %first, label %later
first:
  store i64 %me, ptr %owner_at
  br label %head
later:
  %mine = icmp eq i64 %owner, %me
  %several = icmp eq i64 %owner, 0
  %settled = or i1 %mine, %several
  br i1 %settled, label %done, label %second
second:
  store i64 0, ptr %owner_at
  br label %head
head:
  %free = icmp eq i64 %allowed, 0
  %least = call i64 @llvm.smin.i64(i64 %most, i64 %allowed)
  %open = select i1 %free, i64 %most, i64 %least
  %want = select i1 %alone, i64 %open, i64 1
  %capped = and i1 %alone, %free
  %place = getelementptr i64, ptr @tenferro_blas_state, i64 3
  %count = load i64, ptr %place
  br label %test
test:
  %i = phi i64 [0, %head], [%next, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  call void @set(i64 %i, i64 %want, i1 %capped)
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

define void @leave() {
  %inside = load i64, ptr @tenferro_blas_state
  %now = sub i64 %inside, 1
  store i64 %now, ptr @tenferro_blas_state
  %place = getelementptr i64, ptr @tenferro_blas_state, i64 3
  %count = load i64, ptr %place
  %last = icmp eq i64 %now, 0
  br i1 %last, label %test, label %done
test:
  %i = phi i64 [0, %0], [%next, %step]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %base = mul i64 %i, 4
  %at = add i64 %base, 4
  %row = getelementptr i64, ptr @tenferro_blas_state, i64 %at
  %saved = getelementptr i64, ptr %row, i64 3
  %was = load i64, ptr %saved
  %changed = icmp ne i64 %was, 0
  br i1 %changed, label %back, label %step
back:
  store i64 0, ptr %saved
  %kept = getelementptr i64, ptr %row, i64 2
  %before = load i64, ptr %kept
  %before32 = trunc i64 %before to i32
  %where = getelementptr i64, ptr %row, i64 1
  %setter = load ptr, ptr %where
  call void %setter(i32 %before32)
  br label %step
step:
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

define ptr @py_enter(ptr %self, ptr %args, i64 %nargs) {
  %flow = alloca i32
  %two = icmp eq i64 %nargs, 2
  br i1 %two, label %count, label %done
count:
  %most_object = load ptr, ptr %args
  %most = call i64 @tenferro_long_as_long(ptr %most_object, ptr %flow)
  %second = getelementptr ptr, ptr %args, i64 1
  %allowed_object = load ptr, ptr %second
  %allowed = call i64 @tenferro_long_as_long(ptr %allowed_object, ptr %flow)
  call void @enter(i64 %most, i64 %allowed)
  br label %done
done:
  call void @tenferro_incref(ptr @tenferro_none)
  ret ptr @tenferro_none
}

define ptr @py_leave(ptr %self, ptr %none) {
  call void @leave()
  call void @tenferro_incref(ptr @tenferro_none)
  ret ptr @tenferro_none
}

declare void @tenferro_incref(ptr)
declare i64 @llvm.smin.i64(i64, i64)
"""


_STATE: Final = (ctypes.c_int64 * (FIRST + ROW * MOST_LIBRARIES))()
"""The table of the process. A finalizer that computes while the arbiter is made makes another one of the same table."""


class NativeArbiter:
    """`Arbiter` with `enter` and `leave` in machine code.

    Attributes:
        symbols: addresses of the table and of both functions, for entries of other kernels.
    """

    def __init__(self, calls: dict[str, int]) -> None:
        self._state = _STATE
        self._lock = new_lock()
        self._libraries: dict[str, _blas.Library] = {}
        ident = ctypes.cast(ctypes.pythonapi.PyThread_get_thread_ident, ctypes.c_void_p).value or 0
        table = {
            "tenferro_blas_state": ctypes.addressof(self._state),
            "tenferro_none": id(None),
            "tenferro_thread_ident": ident,
        }
        names = ("enter", "leave", "py_enter", "py_leave")
        enter, leave, py_enter, py_leave = engine().functions(TEXT, names, calls | table)
        self.symbols = table | {"tenferro_blas_enter": enter, "tenferro_blas_leave": leave}
        self._kept = [definition("enter", py_enter, FASTCALL), definition("leave", py_leave, NOARGS)]
        self.enter: Any = builtin(self._kept[0], None)
        self.leave: Any = builtin(self._kept[1], None)
        self.refresh()

    def refresh(self) -> None:
        """Look for libraries again; those found before keep their place."""
        with self._lock:
            for library in _blas.libraries():
                if library.path in self._libraries or len(self._libraries) == MOST_LIBRARIES:
                    continue
                at = FIRST + ROW * len(self._libraries)
                for i, function in enumerate((library.get_threads, library.set_threads)):
                    self._state[at + i] = ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
                self._libraries[library.path] = library
                self._state[COUNT] = len(self._libraries)  # last: a call may be reading the table

    def scopes(self, change: int) -> None:
        """A scope of `threads` opens or closes; while one is open, entries ask Python for the limit."""
        with self._lock:
            self._state[SCOPES] += change

    def after_fork(self) -> None:
        """In the child of a fork: calls that other threads of the parent were inside of never end here."""
        if self._state[INSIDE]:
            self._state[INSIDE] = 1
            self.leave()


def make() -> NativeArbiter | None:
    """The arbiter in machine code, None where it cannot be had."""
    have = interpreter()
    try:
        return None if have is None else NativeArbiter(have.symbols)
    except BackendUnavailableError:  # the compiler is there, but too old
        return None
