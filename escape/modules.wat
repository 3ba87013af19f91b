;;= helpers
;;- hold
(func $hold
  (i64.store (i32.const 8) (i64.const 0x10000000018)) (i64.store (i32.const 24) (i64.const 0x0a646c6f68))
  (i32.store (i32.const 12) (i32.const 5)) (drop (call $fd_write (i32.const 2) (i32.const 8) (i32.const 1) (i32.const 16)))
  (memory.fill (i32.const 128) (i32.const 0) (i32.const 48)) (i32.store (i32.const 144) (i32.const 1))
  (i64.store (i32.const 152) (i64.const 400000000))
  (drop (call $poll_oneoff (i32.const 128) (i32.const 192) (i32.const 1) (i32.const 240))))
;;- say
(func $say (param $v i32) (local $at i32)
  (local.set $at (i32.const 63))
  (loop $next
   (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $v) (i32.const 10))))
   (local.set $at (i32.sub (local.get $at) (i32.const 1)))
   (br_if $next (local.tee $v (i32.div_u (local.get $v) (i32.const 10)))))
  (call $out (i32.const 1) (i32.add (local.get $at) (i32.const 1)) (i32.sub (i32.const 63) (local.get $at))))
;;- in
(func $in (param $at i32) (result i32) (local $n i32) (local $more i32)
  (loop $next
   (i32.store (i32.const 8) (i32.add (local.get $at) (local.get $n))) (i32.store (i32.const 12) (i32.const 32768))
   (drop (call $fd_read (i32.const 0) (i32.const 8) (i32.const 1) (i32.const 16)))
   (local.set $more (i32.load (i32.const 16)))
   (local.set $n (i32.add (local.get $n) (local.get $more)))
   (br_if $next (local.get $more)))
  (local.get $n))
;;- out
(func $out (param $fd i32) (param $at i32) (param $n i32)
  (i32.store (i32.const 8) (local.get $at)) (i32.store (i32.const 12) (local.get $n))
  (drop (call $fd_write (local.get $fd) (i32.const 8) (i32.const 1) (i32.const 16))))

;;= neighbour
;;- body
(local.set $n (call $in (i32.const 4096)))
(drop (call $args_sizes_get (i32.const 100) (i32.const 104)))
(drop (call $environ_sizes_get (i32.const 108) (i32.const 112)))
(call $out (i32.const 1) (i32.const 1024) (i32.const 1))
(call $say (call $fd_prestat_get (i32.const 3) (i32.const 200)))
(call $out (i32.const 1) (i32.const 1025) (i32.const 1))
(call $say (i32.add (i32.load (i32.const 100)) (i32.load (i32.const 108))))
(call $out (i32.const 1) (i32.const 1025) (i32.const 1))
(call $say (i32.load (i32.const 32768)))
(call $out (i32.const 1) (i32.const 1025) (i32.const 1))
(call $out (i32.const 1) (i32.const 4096) (local.get $n))
(call $out (i32.const 1) (i32.const 1026) (i32.const 1))
