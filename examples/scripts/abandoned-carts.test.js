import { test, expect } from "testing";

const mail = "ann@example.com";

test("reminds each cart once", { times: 2, now: "2027-01-10T12:00:00Z", seed: { carts: [
  { id: "old", mail, items: ["Tea", "Cup"], touched: new Date("2027-01-09T11:00:00Z") },
  { id: "fresh", mail, items: ["Pot"], touched: new Date("2027-01-10T11:00:00Z") },
  { id: "ordered", mail, items: ["Tin"], touched: new Date("2027-01-08T11:00:00Z"), ordered: true },
] } }, ({ mails, rows, runs }) => {
  expect(runs.map((run) => run.result)).toEqual([1, 0]);
  expect(mails).toMatchObject([{ to: [mail], text: "Tea\nCup" }]);
  expect(rows.carts.filter((cart) => cart.reminded).map((cart) => cart.id)).toEqual(["old"]);
});
