"""LLVM text of the pool: its lock, and the lists of free blocks by class and by age.

Header words at data - 64: mark, base, bytes of the whole block, class (or capacity), class links, age links.
"""

from typing import Final

LISTS: Final = """
declare ptr @system_malloc(i64)
declare ptr @system_calloc(i64, i64)
declare void @system_free(ptr)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)

define private void @lock(ptr %pool) #0 {
entry:
  br label %try
try:
  %was = atomicrmw xchg ptr %pool, i64 1 acquire
  %free = icmp eq i64 %was, 0
  br i1 %free, label %done, label %wait
wait:
  $YIELD
  br label %try
done:
  ret void
}
define private void @unlock(ptr %pool) #0 {
  store atomic i64 0, ptr %pool release, align 8
  ret void
}
define private void @count(ptr %place, i64 %change) #0 {
  %old = load i64, ptr %place
  %new = add i64 %old, %change
  store i64 %new, ptr %place
  ret void
}
define private ptr @word(ptr %header, i64 %i) #0 {
  %p = getelementptr i64, ptr %header, i64 %i
  ret ptr %p
}

; Both lists are doubly linked through the words `link` (towards the head) and `link + 1`; `head` holds the first.
define private void @unlink(ptr %header, i64 %link, ptr %head) #0 {
entry:
  %before_at = call ptr @word(ptr %header, i64 %link)
  %next = add i64 %link, 1
  %after_at = call ptr @word(ptr %header, i64 %next)
  %before = load ptr, ptr %before_at
  %after = load ptr, ptr %after_at
  %first = icmp eq ptr %before, null
  %before_next = call ptr @word(ptr %before, i64 %next)
  %place = select i1 %first, ptr %head, ptr %before_next
  store ptr %after, ptr %place
  %last = icmp eq ptr %after, null
  br i1 %last, label %done, label %back
back:
  %after_link = call ptr @word(ptr %after, i64 %link)
  store ptr %before, ptr %after_link
  br label %done
done:
  ret void
}
define private void @link(ptr %header, i64 %link, ptr %head) #0 {
entry:
  %before_at = call ptr @word(ptr %header, i64 %link)
  %next = add i64 %link, 1
  %after_at = call ptr @word(ptr %header, i64 %next)
  %first = load ptr, ptr %head
  store ptr null, ptr %before_at
  store ptr %first, ptr %after_at
  store ptr %header, ptr %head
  %empty = icmp eq ptr %first, null
  br i1 %empty, label %done, label %back
back:
  %first_link = call ptr @word(ptr %first, i64 %link)
  store ptr %header, ptr %first_link
  br label %done
done:
  ret void
}
define private ptr @list(ptr %pool, ptr %header) #0 {
  %class_at = call ptr @word(ptr %header, i64 3)
  %class = load i64, ptr %class_at
  %i = add i64 %class, $HEADS
  %head = call ptr @word(ptr %pool, i64 %i)
  ret ptr %head
}
; Out of both lists. The oldest block is found without a second walk: its `newer` link becomes the oldest.
define private void @remove(ptr %pool, ptr %header) #0 {
entry:
  %head = call ptr @list(ptr %pool, ptr %header)
  call void @unlink(ptr %header, i64 4, ptr %head)
  %oldest = @@oldest
  %last = load ptr, ptr %oldest
  %is_last = icmp eq ptr %last, %header
  br i1 %is_last, label %move, label %age
move:
  %newer_at = call ptr @word(ptr %header, i64 6)
  %newer = load ptr, ptr %newer_at
  store ptr %newer, ptr %oldest
  br label %age
age:
  %newest = @@newest
  call void @unlink(ptr %header, i64 6, ptr %newest)
  %bytes_at = call ptr @word(ptr %header, i64 2)
  %bytes = load i64, ptr %bytes_at
  %less = sub i64 0, %bytes
  %cached = @@cached
  call void @count(ptr %cached, i64 %less)
  ret void
}

define void @trim(ptr %pool, i64 %keep) #0 {
entry:
  br label %next
next:
  call void @lock(ptr %pool)
  %cached = @@cached
  %now = load i64, ptr %cached
  %oldest = @@oldest
  %header = load ptr, ptr %oldest
  %fits = icmp ule i64 %now, %keep
  %none = icmp eq ptr %header, null
  %stop = or i1 %fits, %none
  br i1 %stop, label %done, label %drop
drop:
  call void @remove(ptr %pool, ptr %header)
  %returned = @@returned
  call void @count(ptr %returned, i64 1)
  call void @unlock(ptr %pool)
  %base_at = call ptr @word(ptr %header, i64 1)
  %base = load ptr, ptr %base_at
  %bytes_at = call ptr @word(ptr %header, i64 2)
  %bytes = load i64, ptr %bytes_at
  call void @give(ptr %base, i64 %bytes)
  br label %next
done:
  call void @unlock(ptr %pool)
  ret void
}
"""
