// limits(): limits, use and remainder of this run's budgets. A call that would exceed a budget fails with the code `budget_exceeded`; its
// `details` are the row of that budget: { budget, per, limit, used, asked }.

interface Budget {
  limit: number;
  used: number;
  left: number;
}

interface Limits {
  /** Budgets of this attempt. */
  attempt: Record<
    "host_calls" | "queries" | "rows_read" | "rows_written" | "bytes_written" | "mails" | "events" | "later_runs" | "fetches" |
    "fetch_bytes",
    Budget
  >;
  /** Budgets of the tenant's UTC day, if the operator has set them: use at the start of this run plus use of this run. */
  day: Partial<Record<"calls" | keyof Limits["attempt"], Budget>>;
  /** The tenant's storage, at the start of this run. */
  tenant: { storage_bytes?: Budget };
  /** Limits of the process, by name: cpu_ms, wall_ms, memory_bytes, host_calls and so on. */
  process: Record<string, number>;
}

declare function limits(): Promise<Limits>;
