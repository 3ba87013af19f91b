"""Globals: text encoding, timers, events, structured clone, digests."""

import hashlib
import json

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)


@pytest.mark.parametrize("algorithm", ["SHA-1", "SHA-256", "SHA-384", "SHA-512"])
def test_digest(run, algorithm: str) -> None:
    sizes = [0, 1, 55, 56, 63, 64, 111, 112, 127, 128, 1000]
    source = f"""
      return await Promise.all({sizes}.map(async (size) => {{
        const data = Uint8Array.from({{ length: size }}, (_, i) => i % 251);
        const out = new Uint8Array(await crypto.subtle.digest("{algorithm.lower()}", data));
        return Array.from(out, (b) => b.toString(16).padStart(2, "0")).join("");
      }}));
    """
    name = algorithm.replace("-", "")
    expected = [hashlib.new(name, bytes(index % 251 for index in range(size))).hexdigest() for size in sizes]
    assert run(source).result == expected


def test_an_unknown_digest(run) -> None:
    assert run("await crypto.subtle.digest('MD5', new Uint8Array(1))").error["name"] == "NotSupportedError"


def test_random_values_are_bounded(run) -> None:
    assert run("crypto.getRandomValues(new Uint8Array(65537))").error["name"] == "QuotaExceededError"
    assert run("crypto.getRandomValues(new Float64Array(1))").error["name"] == "TypeMismatchError"
    assert run("return crypto.getRandomValues(new BigUint64Array(2)).length").result == 2


@pytest.mark.parametrize("text", ["", "plain", "ä€", "😀 astral", "\ufeffmark", "\x00nul"])
def test_utf8_round_trip(run, text: str) -> None:
    source = f"""
      const t = {json.dumps(text)};
      const bytes = new TextEncoder().encode(t);
      return [[...bytes], new TextDecoder("utf-8", {{ ignoreBOM: true }}).decode(bytes) === t];
    """
    assert run(source).result == [list(text.encode()), True]


@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        b"a\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x98",
        b"\xc0\x80",
        b"\xe2\x28\xa1",
        b"\xf4\x90\x80\x80",
        b"ok\x80ok",
    ],
)
def test_bad_utf8_is_replaced_like_the_standard_says(run, data: bytes) -> None:
    assert run(f"return new TextDecoder().decode(new Uint8Array({list(data)}))").result == data.decode(
        "utf-8", "replace"
    )
    assert (
        run(f"new TextDecoder('utf8', {{ fatal: true }}).decode(new Uint8Array({list(data)}))").error["name"]
        == "TypeError"
    )


def test_streamed_text(run) -> None:
    source = """
      const d = new TextDecoder();
      let out = "";
      for (const b of new TextEncoder().encode("ä€😀")) out += d.decode(new Uint8Array([b]), { stream: true });
      return out + d.decode();
    """
    assert run(source).result == "ä€😀"


def test_encode_into(run) -> None:
    assert run("const b = new Uint8Array(4); return [new TextEncoder().encodeInto('a€b', b), [...b]]").result == [
        {"read": 2, "written": 4},
        [97, 226, 130, 172],
    ]
    assert run("new TextDecoder('koi8-r')").error["name"] == "RangeError"


def test_base64(run) -> None:
    assert run("return [btoa('hi'), atob('aGk=')]").result == ["aGk=", "hi"]


def test_timers_run_in_order(run) -> None:
    source = """
      const seen = [];
      setTimeout(() => seen.push("late"), 150);
      setTimeout((a, b) => seen.push(a + b), 1, "ar", "gs");
      const gone = setTimeout(() => seen.push("gone"), 5);
      clearTimeout(gone);
      queueMicrotask(() => seen.push("micro"));
      let n = 0;
      const every = setInterval(() => { if (++n === 3) { clearInterval(every); seen.push("third") } }, 2);
      await new Promise((resolve) => setTimeout(resolve, 160));
      return seen;
    """
    assert run(source).result == ["micro", "args", "third", "late"]


def test_equal_timers_keep_their_order_and_microtasks_run_between(run) -> None:
    source = """
      const seen = [];
      for (const n of [1, 2]) setTimeout(() => { seen.push(n); Promise.resolve().then(() => seen.push("m" + n)) }, 3);
      await new Promise((resolve) => setTimeout(resolve, 8));
      return seen;
    """
    assert run(source).result == [1, "m1", 2, "m2"]


def test_a_result_does_not_wait_for_timers(run) -> None:
    assert run("setTimeout(() => {}, 60000); return 1").result == 1


def test_an_error_in_a_timer_ends_the_run(run) -> None:
    reported = run("setTimeout(() => {\n  throw new Error('late')\n}, 1)\nawait new Promise(() => {})")
    assert (reported.outcome, reported.error["message"], reported.error["line"]) == ("script_error", "late", 2)


@pytest.mark.parametrize("delay", ["1e300", "Infinity", "-5", "NaN", "'2'", "{}", "2 ** 53"])
def test_odd_delays(run, delay: str) -> None:
    assert run(f"setTimeout(() => {{}}, {delay}); await new Promise((r) => setTimeout(r, 2)); return 1").result == 1


def test_many_timers(run) -> None:
    source = "let n = 0; for (let i = 0; i < 2000; i++) setTimeout(() => n++, i % 5); await new Promise((r) => setTimeout(r, 9)); return n"
    assert run(source, cpu_ms=20_000).result == 2000


def test_a_cleared_timer_does_not_wake(run) -> None:
    assert (
        run(
            "const t = setTimeout(() => {}, 50_000); setTimeout(() => clearTimeout(t), 1); await new Promise(() => {})"
        ).error["name"]
        == "NeverSettled"
    )


def test_a_timer_needs_a_function(run) -> None:
    assert run("setTimeout('alert(1)', 1)").error["name"] == "TypeError"


def test_events(run) -> None:
    source = """
      const seen = [];
      const t = new EventTarget();
      const once = (e) => seen.push("once " + e.type);
      t.addEventListener("x", once, { once: true });
      t.addEventListener("x", { handleEvent(e) { seen.push("object " + e.detail); e.preventDefault() } });
      const first = t.dispatchEvent(new CustomEvent("x", { detail: 1, cancelable: true }));
      t.removeEventListener("x", once);
      const second = t.dispatchEvent(new CustomEvent("x", { detail: 2 }));
      return [seen, first, second];
    """
    assert run(source).result == [["once x", "object 1", "object 2"], False, True]


def test_abort(run) -> None:
    source = """
      const c = new AbortController();
      const any = AbortSignal.any([c.signal]);
      let heard = 0;
      c.signal.addEventListener("abort", () => heard++);
      c.signal.onabort = () => heard++;
      c.abort(); c.abort();
      const out = [heard, c.signal.aborted, c.signal.reason.name, any.aborted, AbortSignal.abort("why").reason];
      try { c.signal.throwIfAborted() } catch (e) { out.push(e.name) }
      const slow = AbortSignal.timeout(2);
      await new Promise((resolve) => slow.addEventListener("abort", resolve));
      return [...out, slow.reason.name];
    """
    assert run(source).result == [2, True, "AbortError", True, "why", "AbortError", "TimeoutError"]
    assert run("new AbortSignal()").error["name"] == "TypeError"


def test_structured_clone(run) -> None:
    source = """
      const from = { d: new Date(5), r: /x/gi, m: new Map([[1, new Set([2])]]), u: new Uint16Array([1, 2]),
        e: new RangeError("q"), l: [1, , 3], n: null, b: 10n };
      from.self = from;
      const to = structuredClone(from);
      return [to !== from, to.self === to, to.d.getTime(), String(to.r), to.m.get(1).has(2), [...to.u], to.u.buffer !== from.u.buffer,
              to.e instanceof RangeError, to.e.message, 1 in to.l, to.l.length, String(to.b)];
    """
    assert run(source).result == [True, True, 5, "/x/gi", True, [1, 2], True, True, "q", False, 3, "10"]


@pytest.mark.parametrize("value", ["() => 1", "Symbol('s')", "{ f() {} }", "Promise.resolve()", "new WeakMap()"])
def test_what_cannot_be_cloned(run, value: str) -> None:
    assert run(f"const v = {value}; structuredClone(v)").error["name"] == "DataCloneError"
