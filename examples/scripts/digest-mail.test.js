import { test, expect } from "testing";

test("sends what is new once, escaped", { times: 2, now: "2027-01-04T08:00:00Z", seed: { posts: [
  { title: "<b>Tea</b>", author: "Ann", published: new Date("2027-01-04T07:00:00Z") },
  { title: "Old", author: "Ann", published: new Date("2027-01-02T07:00:00Z") },
] } }, ({ mails, runs }) => {
  expect(runs.map((run) => run.result)).toEqual([1, 0]);
  expect(mails).toHaveLength(1);
  expect(mails[0].html).toContain("&lt;b&gt;Tea&lt;/b&gt;");
  expect(mails[0].html).not.toContain("<b>");
});
