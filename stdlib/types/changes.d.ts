// changes: changes of an exposed table or a collection.

interface Change {
  /** Id of the row. `db[set].get(id)` returns the row, or null if it has been deleted since. */
  readonly id: string | number;
  readonly kind: "insert" | "update" | "delete";
  readonly at: Instant;
}

interface Changes extends Array<Change> {
  /** True if there are more changes: the schedule then runs again as soon as this run has succeeded. */
  readonly more: boolean;
}

/**
 * Returns the next changes since this schedule's last successful run, each once, in order; by default 100, at most 10 000.
 * The position advances only when the run succeeds. `from: "now"` skips earlier changes, `from: "start"` starts over.
 */
declare function changes(set: string, options?: { limit?: number; from?: "start" | "now" }): Promise<Changes>;
