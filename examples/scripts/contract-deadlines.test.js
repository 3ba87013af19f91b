import { test, expect } from "testing";

/** @type {(id: string, notice: string, announced?: number[]) => Record<string, unknown>} */
const contract = (id, notice, announced) => ({ id, name: id, owner: "ann@example.com", notice, announced });

test("announces each stage once", { schedule: "contract-deadlines", now: "2027-01-04T00:00:00Z", for: "40d",
  seed: { contracts: [contract("a", "2027-02-10"), contract("over", "2027-01-01"), contract("far", "2028-01-01")] },
}, ({ mails, rows }) => {
  expect(mails.map((mail) => mail.subject)).toEqual([
    "a: 30 days to give notice", "a: 7 days to give notice", "a: 1 days to give notice",
  ]);
  expect(rows.contracts.find((each) => each.id === "a").announced).toEqual([30, 7, 1]);
});
