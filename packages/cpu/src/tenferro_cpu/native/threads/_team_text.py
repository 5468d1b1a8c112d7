"""LLVM text of the thread team: who posts a job, who joins in, and how both know that it is over.

One job runs at a time. Its owner writes it down, opens the *gate* and takes pieces itself; the gate holds the seats
that are left (upper half) and the workers inside (lower half). A worker may read the job only between taking a seat
and giving it back, and the owner returns only when the seats are gone and nobody is inside: so a worker that wakes up
late meets a closed gate, or the next job, never a half of each. Pieces are handed out by one counter.

What is ordered, also on processors that reorder: the owner writes the job and then the gate (release), a worker takes
its seat (acquire) and then reads the job; a worker gives its seat back (release) when its pieces are done, and the
owner goes on when it has seen the empty gate (acquire). Every change of the gate in between is a read-modify-write, so
that who sees the last one sees what came before each of them. A worker that goes to sleep counts itself and then looks
at the epoch, the owner changes the epoch and then looks for sleepers: all four are sequentially consistent, or both
might miss the other.
"""

from typing import Final

WORDS: Final = {
    "busy": 0,  # 1 while a job is posted
    "callers": 1,  # threads inside of `parallel_for`, each with a core of its own
    "cores": 2,
    "allowed": 3,  # threads of one job outside of any ``with threads(n)``
    "started": 4,  # workers that were made
    "epoch": 8,  # counts jobs; workers wait for it to change
    "gate": 16,
    "next": 24,  # the next piece
    "kernel": 32,
    "context": 33,
    "pieces": 34,
    "sleeping": 40,  # workers in `wait`, or about to be
    "running": 41,  # workers that have not ended
    "stop": 42,  # 1: workers end, and every job runs in its owner
    "jobs": 43,  # jobs that workers were asked to join
    "rest": 44,  # jobs that still run in their owners, after one whose worker did not get a core
}
"""Place of every word of the state, in 64-bit words; what different threads write lies in different cache lines."""

MUTEX, CONDITION, SIGNALS, OLD_SIGNALS = 512, 640, 768, 896
STATE_BYTES: Final = 1024

SPINS: Final = 1000
"""Turns that a worker waits for the next job before it sleeps: some tens of microseconds."""

PATIENCE: Final = 4000
"""Turns that an owner waits for the last workers before it gives its core away."""

REST: Final = 32
"""Jobs that then run in their owners, where the owner had done most of the work: the other cores are busy."""

EXTERNAL: Final = (
    "pthread_create", "pthread_detach", "pthread_sigmask", "sigfillset", "pthread_mutex_init", "pthread_mutex_lock",
    "pthread_mutex_unlock", "pthread_cond_init", "pthread_cond_wait", "pthread_cond_signal", "pthread_cond_broadcast",
    "sched_yield",
)  # fmt: skip
"""Functions of the C library, which the text knows as ``tenferro_<name>``."""

_PAUSES: Final = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"),
    "": ("", ""),
}
"""One turn of waiting, by architecture. On AArch64 ``yield`` takes no time, and the turns would be over too soon."""


def text(architecture: str, mask_signals: int) -> str:
    """The module with ``parallel_for``, ``prepare``, ``wake_all`` and ``allowed``.

    Args:
        architecture: ``"x86_64"``, ``"aarch64"`` or "" for another.
        mask_signals: value of ``SIG_SETMASK``.
    """
    declared, pause = _PAUSES[architecture]
    return _filled(_SERIAL + _TEAM, declared, pause).replace("$SETMASK", str(mask_signals)) + ALLOWED


def serial_text() -> str:
    """The same functions where there are no threads to be had: every job runs in its owner."""
    return _filled(_SERIAL + _ALONE, "", "") + ALLOWED


def _filled(template: str, declared: str, pause: str) -> str:
    for name, place in WORDS.items():
        template = template.replace(f"@@{name}", f"getelementptr (i64, ptr @tenferro_team, i64 {place})")
    for name, place in {"MUTEX": MUTEX, "CONDITION": CONDITION, "SIGNALS": SIGNALS, "OLD": OLD_SIGNALS}.items():
        template = template.replace(f"&&{name}", f"getelementptr (i8, ptr @tenferro_team, i64 {place})")
    for name, number in {"$SPINS": SPINS, "$PATIENCE": PATIENCE, "$SEAT": 1 << 32, "$REST": REST}.items():
        template = template.replace(name, str(number))
    return declared + template.replace("$PAUSE", pause)


ALLOWED: Final = """
; Threads that a job of this Python thread may use; with the interpreter's lock held.
define i64 @allowed() nounwind {
  %slot = alloca ptr
  %flow = alloca i32
  store ptr null, ptr %slot
  %bad = call i32 @tenferro_context_get(ptr @tenferro_limit, ptr null, ptr %slot)
  %value = load ptr, ptr %slot
  %none = icmp eq ptr %value, null
  br i1 %none, label %free, label %read
read:
  %limit = call i64 @tenferro_long_as_long(ptr %value, ptr %flow)
  call void @tenferro_decref(ptr %value)
  %scoped = icmp sgt i64 %limit, 0
  br i1 %scoped, label %bound, label %free
bound:
  ret i64 %limit
free:
  %usual = load i64, ptr getelementptr (i64, ptr @tenferro_team, i64 3)
  ret i64 %usual
}
@tenferro_limit = external global i8
declare i32 @tenferro_context_get(ptr, ptr, ptr)
declare i64 @tenferro_long_as_long(ptr, ptr)
declare void @tenferro_decref(ptr)
"""

_SERIAL: Final = """
@tenferro_team = external global [128 x i64]

define private void @alone(ptr %kernel, ptr %context, i64 %pieces) nounwind {
entry:
  br label %test
test:
  %p = phi i64 [ 0, %entry ], [ %q, %body ]
  %more = icmp slt i64 %p, %pieces
  br i1 %more, label %body, label %done
body:
  call void %kernel(ptr %context, i64 %p)
  %q = add i64 %p, 1
  br label %test
done:
  ret void
}
"""

_ALONE: Final = """
define void @prepare() { ret void }
define void @wake_all() { ret void }
define void @parallel_for(ptr %kernel, ptr %context, i64 %pieces, i64 %most) nounwind {
  call void @alone(ptr %kernel, ptr %context, i64 %pieces)
  ret void
}
"""

_TEAM: Final = """
declare i32 @tenferro_pthread_create(ptr, ptr, ptr, ptr)
declare i32 @tenferro_pthread_detach(i64)
declare i32 @tenferro_pthread_sigmask(i32, ptr, ptr)
declare i32 @tenferro_sigfillset(ptr)
declare i32 @tenferro_pthread_mutex_init(ptr, ptr)
declare i32 @tenferro_pthread_mutex_lock(ptr)
declare i32 @tenferro_pthread_mutex_unlock(ptr)
declare i32 @tenferro_pthread_cond_init(ptr, ptr)
declare i32 @tenferro_pthread_cond_wait(ptr, ptr)
declare i32 @tenferro_pthread_cond_signal(ptr)
declare i32 @tenferro_pthread_cond_broadcast(ptr)
declare i32 @tenferro_sched_yield()
declare i64 @llvm.smin.i64(i64, i64)

; Once, and again in the child of a fork.
define void @prepare() nounwind {
  %m = call i32 @tenferro_pthread_mutex_init(ptr &&MUTEX, ptr null)
  %c = call i32 @tenferro_pthread_cond_init(ptr &&CONDITION, ptr null)
  ret void
}

define void @wake_all() nounwind {
  %e = atomicrmw add ptr @@epoch, i64 1 seq_cst
  %l = call i32 @tenferro_pthread_mutex_lock(ptr &&MUTEX)
  %b = call i32 @tenferro_pthread_cond_broadcast(ptr &&CONDITION)
  %u = call i32 @tenferro_pthread_mutex_unlock(ptr &&MUTEX)
  ret void
}

; Take pieces until there are none; how many that were.
define private i64 @take() nounwind {
entry:
  %kernel = load ptr, ptr @@kernel
  %context = load ptr, ptr @@context
  %pieces = load i64, ptr @@pieces
  br label %next
next:
  %n = phi i64 [ 0, %entry ], [ %n1, %body ]
  %p = atomicrmw add ptr @@next, i64 1 monotonic
  %more = icmp slt i64 %p, %pieces
  br i1 %more, label %body, label %done
body:
  call void %kernel(ptr %context, i64 %p)
  %n1 = add i64 %n, 1
  br label %next
done:
  ret i64 %n
}

define private void @sleep(i64 %seen) nounwind {
entry:
  %l = call i32 @tenferro_pthread_mutex_lock(ptr &&MUTEX)
  %s = atomicrmw add ptr @@sleeping, i64 1 seq_cst
  br label %test
test:
  %now = load atomic i64, ptr @@epoch seq_cst, align 8
  %same = icmp eq i64 %now, %seen
  br i1 %same, label %wait, label %done
wait:
  %w = call i32 @tenferro_pthread_cond_wait(ptr &&CONDITION, ptr &&MUTEX)
  br label %test
done:
  %t = atomicrmw sub ptr @@sleeping, i64 1 seq_cst
  %u = call i32 @tenferro_pthread_mutex_unlock(ptr &&MUTEX)
  ret void
}

define private ptr @worker(ptr %argument) nounwind {
entry:
  %first = ptrtoint ptr %argument to i64
  br label %watch
watch:
  %seen = phi i64 [ %first, %entry ], [ %last, %again ]
  br label %spin
spin:
  %k = phi i64 [ 0, %watch ], [ %k1, %pause ]
  %now = load atomic i64, ptr @@epoch acquire, align 8
  %changed = icmp ne i64 %now, %seen
  br i1 %changed, label %go, label %pause
pause:
  $PAUSE
  %k1 = add i64 %k, 1
  %tired = icmp ugt i64 %k1, $SPINS
  br i1 %tired, label %rest, label %spin
rest:
  call void @sleep(i64 %seen)
  br label %go
go:
  %last = load atomic i64, ptr @@epoch acquire, align 8
  %stop = load atomic i64, ptr @@stop acquire, align 8
  %ends = icmp ne i64 %stop, 0
  br i1 %ends, label %end, label %join
join:
  %gate = load atomic i64, ptr @@gate monotonic, align 8
  %open = icmp uge i64 %gate, $SEAT
  br i1 %open, label %sit, label %again
sit:
  %less = sub i64 %gate, $SEAT
  %in = add i64 %less, 1
  %pair = cmpxchg ptr @@gate, i64 %gate, i64 %in acquire monotonic
  %got = extractvalue { i64, i1 } %pair, 1
  br i1 %got, label %work, label %join
work:
  %n = call i64 @take()
  %g = atomicrmw sub ptr @@gate, i64 1 release
  br label %again
again:
  br label %watch
end:
  %r = atomicrmw sub ptr @@running, i64 1 seq_cst
  ret ptr null
}

; Make workers until there are `want`; signals stay with the threads of the program.
define private void @grow(i64 %have, i64 %want) nounwind {
entry:
  %id = alloca i64
  %f = call i32 @tenferro_sigfillset(ptr &&SIGNALS)
  %b = call i32 @tenferro_pthread_sigmask(i32 $SETMASK, ptr &&SIGNALS, ptr &&OLD)
  br label %test
test:
  %n = phi i64 [ %have, %entry ], [ %n1, %made ]
  %more = icmp slt i64 %n, %want
  br i1 %more, label %make, label %done
make:
  %epoch = load atomic i64, ptr @@epoch monotonic, align 8
  %argument = inttoptr i64 %epoch to ptr
  %r = atomicrmw add ptr @@running, i64 1 seq_cst
  %error = call i32 @tenferro_pthread_create(ptr %id, ptr null, ptr @worker, ptr %argument)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %none, label %made
none:
  %back = atomicrmw sub ptr @@running, i64 1 seq_cst
  br label %done
made:
  %thread = load i64, ptr %id
  %d = call i32 @tenferro_pthread_detach(i64 %thread)
  %n1 = add i64 %n, 1
  store i64 %n1, ptr @@started
  br label %test
done:
  %o = call i32 @tenferro_pthread_sigmask(i32 $SETMASK, ptr &&OLD, ptr null)
  ret void
}

define private void @call_sleepers(i64 %want) nounwind {
entry:
  %l = call i32 @tenferro_pthread_mutex_lock(ptr &&MUTEX)
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %loop ]
  %s = call i32 @tenferro_pthread_cond_signal(ptr &&CONDITION)
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %want
  br i1 %more, label %loop, label %done
done:
  %u = call i32 @tenferro_pthread_mutex_unlock(ptr &&MUTEX)
  ret void
}

; void kernel(context, piece) for every piece, in any order, on at most `most` threads.
define void @parallel_for(ptr %kernel, ptr %context, i64 %pieces, i64 %most) nounwind {
entry:
  %others = atomicrmw add ptr @@callers, i64 1 seq_cst
  %cores = load i64, ptr @@cores
  %free = sub i64 %cores, %others
  %room = call i64 @llvm.smin.i64(i64 %free, i64 %most)
  %threads = call i64 @llvm.smin.i64(i64 %room, i64 %pieces)
  %helpers = sub i64 %threads, 1
  %shared = icmp sgt i64 %helpers, 0
  br i1 %shared, label %look, label %serial
look:
  %left = load atomic i64, ptr @@rest monotonic, align 8
  %rests = icmp sgt i64 %left, 0
  br i1 %rests, label %rest, label %try
rest:
  %r = atomicrmw sub ptr @@rest, i64 1 monotonic
  br label %serial
try:
  %pair = cmpxchg ptr @@busy, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %lead, label %serial
lead:
  %stop = load atomic i64, ptr @@stop acquire, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %leave, label %count
count:
  %started = load i64, ptr @@started
  %few = icmp slt i64 %started, %helpers
  br i1 %few, label %more, label %post
more:
  call void @grow(i64 %started, i64 %helpers)
  br label %post
post:
  %have = load i64, ptr @@started
  %seats = call i64 @llvm.smin.i64(i64 %helpers, i64 %have)
  %any = icmp sgt i64 %seats, 0
  br i1 %any, label %open, label %leave
open:
  store ptr %kernel, ptr @@kernel
  store ptr %context, ptr @@context
  store i64 %pieces, ptr @@pieces
  store atomic i64 0, ptr @@next monotonic, align 8
  %jobs = load i64, ptr @@jobs
  %jobs1 = add i64 %jobs, 1
  store i64 %jobs1, ptr @@jobs
  %gate = mul i64 %seats, $SEAT
  store atomic i64 %gate, ptr @@gate release, align 8
  %e = atomicrmw add ptr @@epoch, i64 1 seq_cst
  %asleep = load atomic i64, ptr @@sleeping seq_cst, align 8
  %some = icmp sgt i64 %asleep, 0
  br i1 %some, label %call, label %work
call:
  %wanted = call i64 @llvm.smin.i64(i64 %asleep, i64 %seats)
  call void @call_sleepers(i64 %wanted)
  br label %work
work:
  %own = call i64 @take()
  %closed = atomicrmw and ptr @@gate, i64 4294967295 acq_rel
  br label %wait
wait:
  %k = phi i64 [ 0, %work ], [ %k1, %pause ], [ 0, %yield ], [ 0, %busy ]
  %inside = load atomic i64, ptr @@gate acquire, align 8
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %over, label %pause
pause:
  $PAUSE
  %k1 = add i64 %k, 1
  %patient = icmp ult i64 %k1, $PATIENCE
  br i1 %patient, label %wait, label %yield
yield:
  %y = call i32 @tenferro_sched_yield()
  %own4 = mul i64 %own, 4
  %pieces3 = mul i64 %pieces, 3
  %most_own = icmp sgt i64 %own4, %pieces3
  br i1 %most_own, label %busy, label %wait
busy:
  store atomic i64 $REST, ptr @@rest monotonic, align 8
  br label %wait
over:
  store atomic i64 0, ptr @@busy release, align 8
  br label %done
leave:
  store atomic i64 0, ptr @@busy release, align 8
  br label %serial
serial:
  call void @alone(ptr %kernel, ptr %context, i64 %pieces)
  br label %done
done:
  %c = atomicrmw sub ptr @@callers, i64 1 seq_cst
  ret void
}
"""
