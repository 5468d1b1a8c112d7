"""LLVM text of the pool: the functions of the allocation handler."""

from typing import Final

HANDLER: Final = """
define private ptr @plain(i64 %size, i1 %zero) #0 {
entry:
  %bytes = add i64 %size, 128
  %short = icmp ult i64 %bytes, %size
  br i1 %short, label %none, label %get
get:
  br i1 %zero, label %clear, label %any
clear:
  %c = call ptr @system_calloc(i64 %bytes, i64 1)
  br label %got
any:
  %m = call ptr @system_malloc(i64 %bytes)
  br label %got
got:
  %base = phi ptr [ %c, %clear ], [ %m, %any ]
  %failed = icmp eq ptr %base, null
  br i1 %failed, label %none, label %fill
none:
  ret ptr null
fill:
  %n = ptrtoint ptr %base to i64
  %up = add i64 %n, 63
  %aligned = and i64 %up, -64
  %header = inttoptr i64 %aligned to ptr
  store i64 $PLAIN, ptr %header
  %base_at = call ptr @word(ptr %header, i64 1)
  store ptr %base, ptr %base_at
  %size_at = call ptr @word(ptr %header, i64 3)
  store i64 %size, ptr %size_at
  %data = getelementptr i8, ptr %header, i64 64
  ret ptr %data
}

; A block of the pool, old or new; `clean` tells whether it is known to be zero.
define private ptr @get(ptr %pool, i64 %size, ptr %clean) #0 {
entry:
  store i1 false, ptr %clean
  %absurd = icmp ugt i64 %size, 140737488355328
  br i1 %absurd, label %none, label %classify
classify:
  %below = sub i64 %size, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %below, i1 false)
  %octave = sub i64 63, %zeros
  %shift = sub i64 %octave, 3
  %eighth = lshr i64 %below, %shift
  %octave8 = shl i64 %octave, 3
  %part = sub i64 %eighth, 8
  %class = add i64 %octave8, %part
  %steps = add i64 %eighth, 1
  %room = shl i64 %steps, %shift
  ; two pages more than the class: for the start of a page, and for the header and the colour
  %page = add i64 %room, 12287
  %bytes = and i64 %page, -4096
  %slot = add i64 %class, $HEADS
  %head = call ptr @word(ptr %pool, i64 %slot)
  call void @lock(ptr %pool)
  %kept = load ptr, ptr %head
  %miss = icmp eq ptr %kept, null
  br i1 %miss, label %fresh, label %hit
hit:
  call void @remove(ptr %pool, ptr %kept)
  %hits = @@hits
  call void @count(ptr %hits, i64 1)
  br label %out
fresh:
  %misses = @@misses
  call void @count(ptr %misses, i64 1)
  %colour = @@colour
  %tint = load i64, ptr %colour
  call void @count(ptr %colour, i64 1)
  call void @unlock(ptr %pool)
  %first = call ptr @take(i64 %bytes)
  %failed = icmp eq ptr %first, null
  br i1 %failed, label %again, label %fill
again:
  call void @trim(ptr %pool, i64 0)
  %second = call ptr @take(i64 %bytes)
  %lost = icmp eq ptr %second, null
  br i1 %lost, label %none, label %fill
none:
  ret ptr null
fill:
  %base = phi ptr [ %first, %fresh ], [ %second, %again ]
  %zeroed = call i1 @zeroed(i64 %bytes)
  store i1 %zeroed, ptr %clean
  ; Arrays start at other places of a page: equal indices of several arrays then meet in no cache set. The places are
  ; 512 bytes apart, and 240 bytes after those of NumPy's large arrays: a load that is a few vectors behind a store, by
  ; its address within the page, waits for it.
  %shade = and i64 %tint, 7
  %offset = shl i64 %shade, 9
  %n = ptrtoint ptr %base to i64
  %up = add i64 %n, 4095
  %aligned = and i64 %up, -4096
  %after = add i64 %aligned, 192
  %place = add i64 %after, %offset
  %new = inttoptr i64 %place to ptr
  %base_at = call ptr @word(ptr %new, i64 1)
  store ptr %base, ptr %base_at
  %bytes_at = call ptr @word(ptr %new, i64 2)
  store i64 %bytes, ptr %bytes_at
  %class_at = call ptr @word(ptr %new, i64 3)
  store i64 %class, ptr %class_at
  call void @lock(ptr %pool)
  br label %out
out:
  %header = phi ptr [ %kept, %hit ], [ %new, %fill ]
  store i64 $TAKEN, ptr %header
  %size_of = call ptr @word(ptr %header, i64 2)
  %total = load i64, ptr %size_of
  %live = @@live
  call void @count(ptr %live, i64 %total)
  %held = load i64, ptr %live
  %cached = @@cached
  %waiting = load i64, ptr %cached
  %all = add i64 %held, %waiting
  %peak = @@peak
  %most = load i64, ptr %peak
  %higher = icmp ugt i64 %all, %most
  %top = select i1 %higher, i64 %all, i64 %most
  store i64 %top, ptr %peak
  call void @unlock(ptr %pool)
  %data = getelementptr i8, ptr %header, i64 64
  ret ptr %data
}

define ptr @malloc(ptr %pool, i64 %size) #0 {
entry:
  %clean = alloca i1
  %large = icmp uge i64 %size, $POOLED
  br i1 %large, label %pooled, label %small
small:
  %s = call ptr @plain(i64 %size, i1 false)
  ret ptr %s
pooled:
  %p = call ptr @get(ptr %pool, i64 %size, ptr %clean)
  ret ptr %p
}

define ptr @calloc(ptr %pool, i64 %n, i64 %item) #0 {
entry:
  %clean = alloca i1
  %product = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %n, i64 %item)
  %size = extractvalue {i64, i1} %product, 0
  %over = extractvalue {i64, i1} %product, 1
  br i1 %over, label %none, label %sized
none:
  ret ptr null
sized:
  %large = icmp uge i64 %size, $POOLED
  br i1 %large, label %pooled, label %small
small:
  %s = call ptr @plain(i64 %size, i1 true)
  ret ptr %s
pooled:
  %p = call ptr @get(ptr %pool, i64 %size, ptr %clean)
  %failed = icmp eq ptr %p, null
  br i1 %failed, label %none, label %zero
zero:
  %is_clean = load i1, ptr %clean
  br i1 %is_clean, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %size, i1 false)
  br label %done
done:
  ret ptr %p
}

define void @free(ptr %pool, ptr %data, i64 %size) #0 {
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %done, label %look
look:
  %header = getelementptr i8, ptr %data, i64 -64
  %mark = load i64, ptr %header
  switch i64 %mark, label %done [ i64 $PLAIN, label %plain
                                  i64 $TAKEN, label %pooled ]
plain:
  store i64 0, ptr %header
  %base_at = call ptr @word(ptr %header, i64 1)
  %base = load ptr, ptr %base_at
  call void @system_free(ptr %base)
  ret void
pooled:
  call void @lock(ptr %pool)
  store i64 $KEPT, ptr %header
  %bytes_at = call ptr @word(ptr %header, i64 2)
  %bytes = load i64, ptr %bytes_at
  %less = sub i64 0, %bytes
  %live = @@live
  call void @count(ptr %live, i64 %less)
  %cached = @@cached
  call void @count(ptr %cached, i64 %bytes)
  %head = call ptr @list(ptr %pool, ptr %header)
  call void @link(ptr %header, i64 4, ptr %head)
  %newest = @@newest
  call void @link(ptr %header, i64 6, ptr %newest)
  %oldest = @@oldest
  %last = load ptr, ptr %oldest
  %alone = icmp eq ptr %last, null
  %new_last = select i1 %alone, ptr %header, ptr %last
  store ptr %new_last, ptr %oldest
  %limit_at = @@limit
  %limit = load i64, ptr %limit_at
  %now = load i64, ptr %cached
  call void @unlock(ptr %pool)
  %over = icmp ugt i64 %now, %limit
  br i1 %over, label %shrink, label %done
shrink:
  call void @trim(ptr %pool, i64 %limit)
  ret void
done:
  ret void
}

define ptr @realloc(ptr %pool, ptr %data, i64 %size) #0 {
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %first, label %look
first:
  %f = call ptr @malloc(ptr %pool, i64 %size)
  ret ptr %f
look:
  %header = getelementptr i8, ptr %data, i64 -64
  %mark = load i64, ptr %header
  %word3 = call ptr @word(ptr %header, i64 3)
  %own = load i64, ptr %word3
  %word1 = call ptr @word(ptr %header, i64 1)
  %base = load i64, ptr %word1
  %word2 = call ptr @word(ptr %header, i64 2)
  %bytes = load i64, ptr %word2
  %end = add i64 %base, %bytes
  %start = ptrtoint ptr %data to i64
  %rest = sub i64 %end, %start
  %is_plain = icmp eq i64 %mark, $PLAIN
  %room = select i1 %is_plain, i64 %own, i64 %rest
  %half = lshr i64 %room, 1
  %fits = icmp ule i64 %size, %room
  %not_less = icmp uge i64 %size, %half
  %stays = and i1 %fits, %not_less
  br i1 %stays, label %same, label %move
same:
  ret ptr %data
move:
  %new = call ptr @malloc(ptr %pool, i64 %size)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %none, label %copy
none:
  ret ptr null
copy:
  %kept = select i1 %fits, i64 %size, i64 %room
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %data, i64 %kept, i1 false)
  call void @free(ptr %pool, ptr %data, i64 0)
  ret ptr %new
}
"""
