// db: the tenant's rows. Nothing is written before the run has succeeded; its own reads see what it wrote.

type Scalar = string | number | boolean | bigint | null | Date | Instant | Uint8Array;

/** Text compares by code point and case; comparisons with a missing value are false, `null` asks for missing ones. */
interface Condition<T = any> {
  eq?: T | null;
  ne?: T | null;
  lt?: T;
  lte?: T;
  gt?: T;
  gte?: T;
  in?: (T | null)[];
  contains?: string;
  startsWith?: string;
}

/**
 * A foreign key to another exposed set is followed by its name without `_id`: `{ "customer.state": "gold" }` in a filter,
 * `include: "customer"` to be given the row there with each row.
 *
 * `{ state: "open", total: { gte: "10.00" }, or: [{ paid: true }, { not: { items: 0 } }] }` */
type Filter = { and?: Filter[]; or?: Filter[]; not?: Filter } & { [field: string]: Scalar | Condition | Filter | Filter[] };

/** `"modified"`, `"-modified"`, `{ modified: "desc" }`, or a list of those. Nulls are smallest. */
type Order = string | { [field: string]: "asc" | "desc" } | (string | { [field: string]: "asc" | "desc" })[];

/** A row by column name. Decimals and 64-bit numbers are text, instants are Instants, bytes are Uint8Arrays. */
type Row = { [column: string]: any };

interface Page<R = Row> extends Array<R> {
  /** Where the next page begins, null after the last. */
  readonly cursor: string | null;
}

interface Group {
  group: { [field: string]: any };
  count: number;
  sum: { [field: string]: any };
  avg: { [field: string]: any };
  min: { [field: string]: any };
  max: { [field: string]: any };
}

/** A set: `R` is what its rows are, `V` what may be written. */
interface Rows<R = Row, V = Row> {
  /** 100 rows unless told, at most 10 000. */
  find(
    filter?: Filter,
    options?: { order?: Order; limit?: number; cursor?: string | null; include?: string | string[] },
  ): Promise<Page<R>>;
  first(filter?: Filter, options?: { order?: Order; include?: string | string[] }): Promise<R | null>;
  /** The row, or null; with `check` the run is tried again when the row changes before it is committed. */
  get(id: string | number, options?: { check?: boolean; include?: string | string[] }): Promise<R | null>;
  count(filter?: Filter): Promise<number>;
  aggregate(
    filter: Filter | undefined,
    wanted: { groupBy?: string | string[]; sum?: string | string[]; avg?: string | string[]; min?: string | string[]; max?: string | string[] },
  ): Promise<Group[]>;
  sum(column: string, filter?: Filter): Promise<any>;
  avg(column: string, filter?: Filter): Promise<any>;
  min(column: string, filter?: Filter): Promise<any>;
  max(column: string, filter?: Filter): Promise<any>;
  /** The new row with its id. */
  insert(values: V): Promise<R>;
  /** At most 500 rows, all of them or none; with their ids. */
  insertMany(rows: V[]): Promise<R[]>;
  /** How many rows it was; each must still hold what the filter saw when the run is committed. `all` lets a filter choose every row. */
  updateMany(filter: Filter, changes: Partial<V>, options?: { all?: boolean }): Promise<number>;
  /** How many rows it was. `all` lets a filter choose every row. */
  deleteMany(filter: Filter, options?: { all?: boolean }): Promise<number>;
  /**
   * Changes the row that has the same id, or the same values in the columns of `on`, else adds one. `on` names columns that
   * are unique together; documents go by their id.
   */
  upsert(values: V, options?: { on?: string | string[] }): Promise<R>;
  /** Fails with code `not_found` when there is no such row. */
  update(id: string | number, changes: Partial<V>): Promise<null>;
  /** Adds to whatever the row holds when the run is committed. */
  increment(id: string | number, amounts: { [column: string]: number | string }): Promise<null>;
  /** Whether there was such a row. */
  delete(id: string | number): Promise<boolean>;
}

/** An exposed table, or a collection of documents under any other name. */
interface Db {
  readonly [set: string]: Rows<any, any>;
}

declare const db: Db;
