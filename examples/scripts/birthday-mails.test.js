import { test, expect } from "testing";

/** @type {(id: string, offset: number, birthday: string) => Record<string, unknown>} */
const person = (id, offset, birthday) => ({ id, name: id, mail: `${id}@example.com`, offset, birthday });

test("at nine of the recipient's zone", { schedule: "birthday-mails", now: "2027-02-26T23:30:00Z", for: "33h", seed: { people: [
  person("tokyo", 9, "02-27"), person("lima", -5, "02-27"), person("leap", 1, "02-29"),
] } }, ({ runs, mails }) => {
  const when = Object.fromEntries(runs.filter((run) => run.result.length).map((run) => [run.result[0], run.slot]));
  expect(when).toEqual({ tokyo: "2027-02-27T00:00:00Z", lima: "2027-02-27T14:00:00Z", leap: "2027-02-28T08:00:00Z" });
  expect(mails).toHaveLength(3);
});
