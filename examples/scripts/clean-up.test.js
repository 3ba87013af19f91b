import { test, expect } from "testing";

test("deletes old ended sessions only", { now: "2027-06-01T03:00:00Z", seed: { sessions: [
  { id: "old", state: "ended", ended: new Date("2027-02-01T00:00:00Z") },
  { id: "new", state: "ended", ended: new Date("2027-05-01T00:00:00Z") },
  { id: "open", state: "open" },
] } }, ({ result, rows, later }) => {
  expect(result).toBe(1);
  expect(rows.sessions.map((session) => session.id)).toEqual(["new", "open"]);
  expect(later).toEqual([]);
});

const many = Array.from({ length: 401 }, (_, n) => ({ id: `s${n}`, state: "ended", ended: new Date("2027-02-01T00:00:00Z") }));

test("goes on until nothing is left", { now: "2027-06-01T03:00:00Z", for: "10m", seed: { sessions: many } }, ({ runs, rows }) => {
  expect(runs.map((run) => run.result)).toEqual([200, 200, 1]);
  expect(runs[2].slot).toBe("2027-06-01T03:02:00Z");
  expect(rows.sessions ?? []).toEqual([]);
});
