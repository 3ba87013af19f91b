"""Warming up a realm leaves nothing that a script could see."""

from tests.unit.runtime import harness

WORLD = """
const seen = [];
const visited = new Set();
const walk = (value, path) => {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || visited.has(value)) return;
  visited.add(value);
  for (const key of Reflect.ownKeys(value)) {
    const found = Object.getOwnPropertyDescriptor(value, key);
    const kind = 'value' in found ? typeof found.value : 'accessor';
    const plain = kind === 'number' || kind === 'boolean' || kind === 'string' ? String(found.value) : '';
    seen.push(path + '.' + String(key) + ':' + kind + plain);
    if ('value' in found) walk(found.value, path + '.' + String(key));
  }
};
walk(globalThis, '');
let stack = ''; try { null.x } catch (e) { stack = e.stack }
return [seen, stack];
"""


def test_the_world_is_the_same_touched_or_not(run) -> None:
    touched = run(WORLD, result_bytes=1 << 20).result
    assert harness.run(harness.prepared(without="warm-up"), WORLD, result_bytes=1 << 20).result == touched
    assert len(touched[0]) > 1000


def test_attempts_do_not_see_each_other(run) -> None:
    assert run("globalThis.left = 1; Object.prototype.left = 2; return 1").result == 1
    assert run("return [typeof left, ({}).left === undefined]").result == ["undefined", True]
