// limits(): what this run may use, has used and has left. A call that would pass a budget fails with the code `budget_exceeded`, and its
// `details` are the row that says so: { budget, per, limit, used, asked }.

interface Budget {
  limit: number;
  used: number;
  left: number;
}

interface Limits {
  /** Of this attempt. */
  attempt: Record<
    "host_calls" | "queries" | "rows_read" | "rows_written" | "bytes_written" | "mails" | "events" | "fetches" | "fetch_bytes",
    Budget
  >;
  /** Of the tenant's UTC day, where the operator has set one: as of the start of this run, and what this run has used since. */
  day: Partial<Record<"calls" | keyof Limits["attempt"], Budget>>;
  /** What the tenant may store, as of the start of this run. */
  tenant: { storage_bytes?: Budget };
  /** Limits of the process, by name: cpu_ms, wall_ms, memory_bytes, host_calls and so on. */
  process: Record<string, number>;
}

declare function limits(): Promise<Limits>;
