import { test, expect } from "testing";

test("deletes old ended sessions only", { now: "2027-06-01T03:00:00Z", seed: { sessions: [
  { id: "old", state: "ended", ended: new Date("2027-02-01T00:00:00Z") },
  { id: "new", state: "ended", ended: new Date("2027-05-01T00:00:00Z") },
  { id: "open", state: "open" },
] } }, ({ result, rows }) => {
  expect(result).toEqual({ deleted: 1, more: false });
  expect(rows.sessions.map((session) => session.id)).toEqual(["new", "open"]);
});
