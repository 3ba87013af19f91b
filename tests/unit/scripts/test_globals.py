"""Globals: text encoding, timers, events, structured clone, digests."""

import json

import pytest

#: Tests run on both runtimes of JavaScript.
pytestmark = pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native"], indirect=True)


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
