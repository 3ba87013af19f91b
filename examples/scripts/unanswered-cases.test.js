import { test, expect } from "testing";

test("leaves out the weekend", { now: "2027-01-11T12:00:00Z", seed: { cases: [
  { id: "friday", title: "Broken", owner: "ann@example.com", state: "open", created: new Date("2027-01-08T09:00:00Z") },
  { id: "wednesday", title: "Late", owner: "ann@example.com", state: "open", created: new Date("2027-01-06T09:00:00Z") },
  { id: "closed", title: "Done", owner: "ann@example.com", state: "closed", created: new Date("2027-01-05T09:00:00Z") },
] } }, ({ result, mails, rows }) => {
  expect(result).toEqual(["wednesday"]);
  expect(mails[0].subject).toBe("Unanswered: Late");
  expect(rows.cases.find((each) => each.id === "wednesday").priority).toBe("high");
});
