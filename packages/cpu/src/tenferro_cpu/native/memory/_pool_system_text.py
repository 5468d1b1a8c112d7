"""LLVM text of the pool: where blocks come from and go to, the C library or the system; `_pool_ir` fills it in."""

from typing import Final

SYSTEM_PLAIN: Final = """
define private ptr @take(i64 %bytes) #0 {
  %p = call ptr @system_malloc(i64 %bytes)
  ret ptr %p
}
define private void @give(ptr %base, i64 %bytes) #0 {
  call void @system_free(ptr %base)
  ret void
}
define private i1 @zeroed(i64 %bytes) #0 {
  ret i1 false
}
"""

SYSTEM_HUGE: Final = """
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
define private i1 @zeroed(i64 %bytes) #0 {
  %mapped = icmp uge i64 %bytes, 2097152
  ret i1 %mapped
}
define private ptr @take(i64 %bytes) #0 {
entry:
  %mapped = call i1 @zeroed(i64 %bytes)
  br i1 %mapped, label %map, label %small
small:
  %s = call ptr @system_malloc(i64 %bytes)
  ret ptr %s
map:
  %more = add i64 %bytes, 2097152
  %p = call ptr @mmap(ptr null, i64 %more, i32 3, i32 34, i32 -1, i64 0)
  %n = ptrtoint ptr %p to i64
  %failed = icmp eq i64 %n, -1
  br i1 %failed, label %none, label %cut
none:
  ret ptr null
cut:
  %up = add i64 %n, 2097151
  %start = and i64 %up, -2097152
  %head = sub i64 %start, %n
  %base = inttoptr i64 %start to ptr
  %any = icmp ne i64 %head, 0
  br i1 %any, label %drop, label %rest
drop:
  %d = call i32 @munmap(ptr %p, i64 %head)
  br label %rest
rest:
  %tail = sub i64 2097152, %head
  %end = getelementptr i8, ptr %base, i64 %bytes
  %e = call i32 @munmap(ptr %end, i64 %tail)
  %whole = and i64 %bytes, -2097152
  %a = call i32 @madvise(ptr %base, i64 %whole, i32 14)
  ret ptr %base
}
define private void @give(ptr %base, i64 %bytes) #0 {
entry:
  %mapped = call i1 @zeroed(i64 %bytes)
  br i1 %mapped, label %map, label %small
small:
  call void @system_free(ptr %base)
  ret void
map:
  %r = call i32 @munmap(ptr %base, i64 %bytes)
  ret void
}
"""
