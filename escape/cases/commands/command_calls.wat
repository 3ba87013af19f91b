;;= I125 closed_imports
;;: says "the import {}"
;;: made "importing"
;;: expect ["compile_error"]
;;: seen {"no_such_function": true}
;;: story "A module imports functions that do not exist: it is refused with their names before it runs."
;; Imports that do not exist, in the assembler's syntax.
;;- many
«(import "env" "f#" (func))×900»
;;- env-system
(import "env" "system" (func (param i32) (result i32)))
;;- env-open
(import "env" "open" (func (param i32 i32 i32) (result i32)))
;;- env-socket
(import "env" "socket" (func (param i32 i32 i32) (result i32)))
;;- env-dlopen
(import "env" "dlopen" (func (param i32 i32) (result i32)))
;;- env-empty
(import "" "" (func))
;;- host-call
(import "env" "host_call" (func (param i32 i32 i32 i32 i32) (result i32)))
;;- host-module
(import "env" "host_module_load" (func (param i32 i32 i32) (result i32)))
;;- lodger
(import "lodger" "call" (func (param i32 i32) (result i32)))
;;- global
(import "env" "secret" (global i32))
;;- global-mutable
(import "env" "__stack_pointer" (global (mut i32)))
;;- table
(import "env" "__indirect_function_table" (table 1 funcref))
;;- wasi-old
(import "wasi_unstable" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
;;- wasi-new
(import "wasi:filesystem/types@0.2.0" "open-at" (func (param i32) (result i32)))
;;- wasi-http
(import "wasi:http/outgoing-handler@0.2.0" "handle" (func (param i32) (result i32)))
;;- wasi-nn
(import "wasi_ephemeral_nn" "load" (func (param i32) (result i32)))
;;- wasi-socket
(import "wasi_snapshot_preview1" "sock_open" (func (param i32 i32 i32) (result i32)))
;;- wasi-exec
(import "wasi_snapshot_preview1" "proc_exec" (func (param i32 i32) (result i32)))
;;- wasi-fork
(import "wasix_32v1" "proc_fork" (func (param i32 i32) (result i32)))
;;- wasi-thread
(import "wasi" "thread-spawn" (func (param i32) (result i32)))
;;- emscripten
(import "env" "emscripten_run_script" (func (param i32)))
;;- gojs
(import "gojs" "syscall/js.valueGet" (func (param i32)))
;;- bindgen
(import "__wbindgen_placeholder__" "__wbg_eval" (func (param i32 i32) (result i32)))
;;- extism
(import "extism:host/env" "http_request" (func (param i64 i64) (result i64)))
;;- spectest
(import "spectest" "print_i32" (func (param i32)))
;;- nul
(import "env\00x" "system" (func))
;;- path
(import "/etc/passwd" "../../x" (func))
;;= I126 nothing_opened
;;: story "A command searches its descriptors for a file of the host."
;;: seen {"answers": [0]}
;;: behind ["seccomp", "landlock", "root", "namespaces", "uid"]
;;: mark "-canary"
;;: says "{}: the canary file"
;;: context "\"CANARY_PATH\""
;;: again [{"mark": "-passwd", "says": "{}: a file of the system", "context": "\"/etc/passwd\""}]
;;- open: a file by its path below the first folder
(local $n i32) (local $fd i32) (local.set $n (i32.sub (call $in (i32.const 4095)) (i32.const 2)))(i32.store (i32.const 300) (i32.const 99))(drop (call $path_open (i32.const 3) (i32.const 1) (i32.const 4096) (local.get $n) (i32.const 0) (i64.const -1) (i64.const -1) (i32.const 0) (i32.const 300))) (local.set $fd (i32.load (i32.const 300)))(i32.store (i32.const 64) (i32.const 16384)) (i32.store (i32.const 68) (i32.const 64)) (i32.store (i32.const 200) (i32.const 0))(drop (call $fd_read (local.get $fd) (i32.const 64) (i32.const 1) (i32.const 200))) (call $say (i32.load (i32.const 200)))
;;- open-stdin: a file by its path below standard input
(local $n i32) (local $fd i32) (local.set $n (i32.sub (call $in (i32.const 4095)) (i32.const 2)))(i32.store (i32.const 300) (i32.const 99))(drop (call $path_open (i32.const 0) (i32.const 1) (i32.const 4096) (local.get $n) (i32.const 0) (i64.const -1) (i64.const -1) (i32.const 0) (i32.const 300))) (local.set $fd (i32.load (i32.const 300)))(i32.store (i32.const 64) (i32.const 16384)) (i32.store (i32.const 68) (i32.const 64)) (i32.store (i32.const 200) (i32.const 0))(drop (call $fd_read (local.get $fd) (i32.const 64) (i32.const 1) (i32.const 200))) (call $say (i32.load (i32.const 200)))
;;- open-any: a file by its path below descriptor 77
(local $n i32) (local $fd i32) (local.set $n (i32.sub (call $in (i32.const 4095)) (i32.const 2)))(i32.store (i32.const 300) (i32.const 99))(drop (call $path_open (i32.const 77) (i32.const 1) (i32.const 4096) (local.get $n) (i32.const 0) (i64.const -1) (i64.const -1) (i32.const 0) (i32.const 300))) (local.set $fd (i32.load (i32.const 300)))(i32.store (i32.const 64) (i32.const 16384)) (i32.store (i32.const 68) (i32.const 64)) (i32.store (i32.const 200) (i32.const 0))(drop (call $fd_read (local.get $fd) (i32.const 64) (i32.const 1) (i32.const 200))) (call $say (i32.load (i32.const 200)))

;;= I126 nothing_opened
;;: story "A command searches its descriptors for a file of the host."
;;: seen {"answers": [0]}
;;- prestat: how many folders are open beforehand
(local $n i32) (local $fd i32) (local.set $fd (i32.const 3)) (block $end (loop $l (br_if $end (call $fd_prestat_get (local.get $fd) (i32.const 200))) (local.set $fd (i32.add (local.get $fd) (i32.const 1))) (br_if $l (i32.lt_u (local.get $fd) (i32.const 200))))) (call $say (i32.sub (local.get $fd) (i32.const 3)))
;;- descriptors: how many descriptors beyond the three can be told about
(local $n i32) (local $fd i32) (local.set $fd (i32.const 3)) (loop $l (local.set $n (i32.add (local.get $n) (i32.eqz (call $fd_fdstat_get (local.get $fd) (i32.const 200))))) (br_if $l (i32.lt_u (local.tee $fd (i32.add (local.get $fd) (i32.const 1))) (i32.const 1024)))) (call $say (local.get $n))

;;= I126 no_arguments
;;: seen {"answers": [0]}
;;: story "The host's arguments and environment are not visible to a command."
;;- arguments: how many arguments there are
(drop (call $args_sizes_get (i32.const 100) (i32.const 104))) (call $say (i32.add (i32.load (i32.const 100)) (i32.load (i32.const 104))))
;;- environment: how large the environment is
(drop (call $environ_sizes_get (i32.const 100) (i32.const 104))) (call $say (i32.add (i32.load (i32.const 100)) (i32.load (i32.const 104))))
;;- arguments-text: the text of the arguments
(drop (call $args_get (i32.const 1024) (i32.const 2048))) (call $say (i32.load8_u (i32.const 2048)))
;;- environment-text: the text of the environment
(drop (call $environ_get (i32.const 1024) (i32.const 2048))) (call $say (i32.load8_u (i32.const 2048)))

;;= I133 checked_pointers
;;: made "forging"
;;: seen {"survives": true, "answers": [21]}
;;: story "Every pointer and length from a command is checked against the memory's size."
;; Calls with pointers or lengths outside the memory, one for each bounds check.
;;- random-beyond: randomness across the end
(call $random_get (i32.const 65000) (i32.const 5000))
;;- random-far: randomness four gigabytes away
(call $random_get (i32.const -8) (i32.const 64))
;;- random-length: randomness of a negative length
(call $random_get (i32.const 0) (i32.const -1))
;;- clock: the time across the end
(call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 65530))
;;- clock-far: the time four gigabytes away
(call $clock_time_get (i32.const 0) (i64.const 0) (i32.const -8))
;;- resolution: a clock's resolution across the end
(call $clock_res_get (i32.const 0) (i32.const 65530))
;;- count: the count of arguments far away
(call $args_sizes_get (i32.const -8) (i32.const 0))
;;- size: the size of arguments far away
(call $args_sizes_get (i32.const 0) (i32.const -8))
;;- environment: the size of the environment far away
(call $environ_sizes_get (i32.const 0) (i32.const -8))
;;- stat: a descriptor's facts across the end
(call $fd_fdstat_get (i32.const 1) (i32.const 65530))
;;- file-stat: a file's facts across the end
(call $fd_filestat_get (i32.const 0) (i32.const 65500))
;;- vectors: a table of vectors across the end
(call $fd_write (i32.const 1) (i32.const 65530) (i32.const 1) (i32.const 200))
;;- vectors-many: a table of vectors that ends behind the memory
(call $fd_write (i32.const 1) (i32.const 60000) (i32.const 1024) (i32.const 200))
;;- written: the count of written bytes far away
(call $fd_write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const -8))
;;- read-vectors: a table to read into across the end
(call $fd_read (i32.const 0) (i32.const 65530) (i32.const 1) (i32.const 200))
;;- read-count: the count of read bytes far away
(call $fd_read (i32.const 0) (i32.const 64) (i32.const 1) (i32.const -8))
;;- poll: subscriptions across the end
(call $poll_oneoff (i32.const 65000) (i32.const 0) (i32.const 64) (i32.const 0))
;;- poll-far: subscriptions four gigabytes away
(call $poll_oneoff (i32.const -8) (i32.const 0) (i32.const 1) (i32.const 0))
;;- write-beyond: a vector that begins inside and ends far outside
(call $vector (i32.const 65000) (i32.const 0x7fffffff))
;;- write-far: a vector four gigabytes away
(call $vector (i32.const -8) (i32.const 8))
;;- write-huge: a vector of four gigabytes
(call $vector (i32.const 0) (i32.const -1))
;;- read-beyond: input read into a vector far outside
(call $into (i32.const -65536) (i32.const 64))
;;- read-end: input read into a vector across the end
(call $into (i32.const 65534) (i32.const 64))
;;- events: events of a poll far away
(call $sleep (i32.const -8) (i32.const 0))
;;- events-count: the count of events far away
(call $sleep (i32.const 4096) (i32.const -8))

;;= I136 one_nan
;;: made "number"
;;: story "The bits of NaN would depend on the processor, unless they are canonical."
;; A NaN from each operation that creates one, as the integer of the upper half of its bits.
;;- divide: nothing divided by nothing
(i32.reinterpret_f32 (f32.div (f32.const 0) (f32.load (i32.const 900))))
;;+ bits
7fc00000
;;- root: the root of a negative number
(i32.reinterpret_f32 (f32.sqrt (f32.load (i32.const 904))))
;;+ bits
7fc00000
;;- subtract: infinity less infinity
(i32.reinterpret_f32 (f32.sub (f32.load (i32.const 908)) (f32.load (i32.const 908))))
;;+ bits
7fc00000
;;- multiply: infinity times nothing
(i32.reinterpret_f32 (f32.mul (f32.load (i32.const 908)) (f32.load (i32.const 900))))
;;+ bits
7fc00000
;;- payload: the bits of a NaN of its own, added to
(i32.reinterpret_f32 (f32.add (f32.load (i32.const 912)) (f32.const 1)))
;;+ bits
7fc00000
;;- double: the same in double precision
(i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 (f64.sub (f64.load (i32.const 920)) (f64.load (i32.const 920)))) (i64.const 32)))
;;+ bits
7ff80000

;;= I134 no_paths
;;: expect ["script_error"]
;;: seen {"ends_as": ["script_error"], "tells_nothing": true}
;;: story "The text of a trap contains nothing of the host."
;;- unreachable: giving up
unreachable
;;- divide: dividing by zero
(drop (i32.div_u (i32.const 1) (i32.load (i32.const 900))))
;;- bounds: reading beyond its memory
(drop (i32.load (i32.const 99999999)))
;;- table: calling beyond its table
(call_indirect (type $t) (i32.const 9))
;;+ extra
(type $t (func)) (table 1 funcref)
;;- null: calling what is not there
(call_indirect (type $t) (i32.const 0))
;;+ extra
(type $t (func)) (table 1 funcref)
;;- exit: ending itself with a number
(call $proc_exit (i32.const 77))
;;- name: a trap in a function whose name is an escape and a line end
(call $f)
;;+ extra
(func $f (@name "x\1b[2J\0ay") unreachable)
;;- deep: a trap sixteen calls deep
(call $f (i32.const 16))
;;+ extra
(func $f (param i32) (if (local.get 0) (then (call $f (i32.sub (local.get 0) (i32.const 1)))) (else unreachable)))

;;= C42-command checked_result
;;: made "writing"
;;: says "standard output that is {}"
;;: expect ["script_error", "bad_request"]
;;: seen {"survives": true, "no_result": true}
;;: story "A result that parsers read differently is refused."
;;- nan: NaN
NaN
;;- infinity: a number beyond all
1e999
;;- digits: a number of four hundred digits
9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999
;;- half: half an object
{\22a\22:1
;;- two: two values
1 2
;;- garbage: a value and something after it
[1]x
;;- bytes: bytes that are no text
\22\ff\fe\22
;;- surrogate: half a surrogate pair in bytes
\22\ed\a0\80\22
;;- overlong: an overlong letter
\22\c0\af\22
;;- nul: a NUL
\22a\00b\22
;;- mark: a byte order mark
\ef\bb\bf1
;;- single: single quotes
'x'
;;- comment: a comment
1//x
;;- newline: a line end inside a text
\22a\0ab\22
;;- twice: an object with one key twice
{\22a\22:1,\22a\22:2}
;;- hidden: a number whose digits hide how large it is
9999999999e299

;;= A13-command coarse_clock
;;: seen {"answers": [0]}
;;: story "The command's clock must not be more precise than a millisecond."
;;- clock: the finest digits of WASI's clock
(local $i i32) (local $n i32) (loop $l (drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 200))) (local.set $n (i32.or (local.get $n) (i32.wrap_i64 (i64.rem_u (i64.load (i32.const 200)) (i64.const 1000000))))) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100)))) (call $say (local.get $n))

;;= shared
;;- forgers
(func $vector (param i32 i32) (result i32)
 (i32.store (i32.const 64) (local.get 0)) (i32.store (i32.const 68) (local.get 1))
 (call $fd_write (i32.const 2) (i32.const 64) (i32.const 1) (i32.const 200)))
(func $into (param i32 i32) (result i32)
 (i32.store (i32.const 64) (local.get 0)) (i32.store (i32.const 68) (local.get 1))
 (call $fd_read (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 200)))
(func $sleep (param i32 i32) (result i32)
 (i32.store (i32.const 1040) (i32.const 1)) (i64.store (i32.const 1048) (i64.const 1000))
 (call $poll_oneoff (i32.const 1024) (local.get 0) (i32.const 1) (local.get 1)))
