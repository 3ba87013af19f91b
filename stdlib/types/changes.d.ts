// changes: what has changed of an exposed table or of a collection.

interface Change {
  /** The row's id; the row itself is db[set].get(id), null when it was deleted since. */
  readonly id: string | number;
  readonly kind: "insert" | "update" | "delete";
  readonly at: Instant;
}

interface Changes extends Array<Change> {
  /** Further ones wait: when the run has succeeded, the schedule runs again at once. */
  readonly more: boolean;
}

/**
 * The next changes since this schedule's last run that succeeded: each once, in order; 100 unless told, at most 10 000.
 * The place moves on only when the run succeeds. `from: "now"` leaves out what came before, `from: "start"` begins anew.
 */
declare function changes(set: string, options?: { limit?: number; from?: "start" | "now" }): Promise<Changes>;
