// db: the tenant's rows. Changes are written when the run has succeeded; reads of the same run see them before.

type Moment = Date | Instant | Temporal.Instant | Temporal.ZonedDateTime | Temporal.PlainDateTime | Temporal.PlainDate | Temporal.PlainTime;
type Scalar = string | number | boolean | null | Moment | Uint8Array;

/**
 * Text is compared by code point, with case. Comparisons with a missing value are false; `null` matches missing values. A condition on a list in
 * a document holds if it holds for one of the elements.
 */
interface Condition<T = any> {
  eq?: T | null;
  ne?: T | null;
  lt?: T;
  lte?: T;
  gt?: T;
  gte?: T;
  in?: (T | null)[];
  notIn?: (T | null)[];
  /** Whether the row has a value there: `{ exists: false }` is the same as null. */
  exists?: boolean;
  contains?: string;
  startsWith?: string;
  /** Of lists in documents: the value, one of the values, all of the values is an element. */
  has?: any;
  hasAny?: any[];
  hasAll?: any[];
  /** `eq`, `ne`, `contains` and `startsWith` take A to Z and a to z for the same; other letters must be the same. */
  ignoreCase?: boolean;
}

/**
 * A filter can follow a foreign key to another exposed set by the key's name without `_id`: `{ "customer.state": "gold" }`.
 * `include: "customer"` adds the referenced row to each row.
 *
 * `{ state: "open", total: { gte: "10.00" }, or: [{ paid: true }, { not: { items: 0 } }] }` */
type Filter = { and?: Filter[]; or?: Filter[]; not?: Filter } & { [field: string]: Scalar | Condition | Filter | Filter[] };

/** `"modified"`, `"-modified"`, `{ modified: "desc" }`, or a list of these. Null is less than all other values. */
type Order = string | { [field: string]: "asc" | "desc" } | (string | { [field: string]: "asc" | "desc" })[];

/** A row by column name. Decimals and 64-bit numbers are text, instants are Instants, bytes are Uint8Arrays. */
type Row = { [column: string]: any };

interface Page<R = Row> extends Array<R> {
  /** Cursor of the next page; null on the last page. */
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

/** A column, or the days, weeks (from Monday) or months of instants in a time zone, by default UTC: the group is the first day as text. */
type GroupBy = string | { day: string; tz?: string } | { week: string; tz?: string } | { month: string; tz?: string };

/** A set: `R` is the type of its rows, `V` the type of values that can be written. */
interface Rows<R = Row, V = Row> {
  /**
   * Returns a page of rows: by default 100, at most 10 000. `select` names the columns to return; the key is always returned. `offset` skips
   * at most 10 000 rows, which count as read: a cursor skips for nothing.
   */
  find(
    filter?: Filter,
    options?: {
      order?: Order; limit?: number; cursor?: string | null; include?: string | string[]; select?: string | string[]; offset?: number;
    },
  ): Promise<Page<R>>;
  /** Every row, fetched page by page: `for await (const order of db.orders.each({ state: "open" })) …` */
  each(
    filter?: Filter,
    options?: { order?: Order; include?: string | string[]; select?: string | string[] },
  ): AsyncGenerator<R, void, void>;
  /** Returns the different values of a column, in order, at most 1000; of lists in documents, their elements. */
  distinct(column: string, filter?: Filter): Promise<any[]>;
  first(filter?: Filter, options?: { order?: Order; include?: string | string[]; select?: string | string[] }): Promise<R | null>;
  /** Returns the row, or null. With `check`, the run is repeated if the row changes before the commit. */
  get(id: string | number, options?: { check?: boolean; include?: string | string[] }): Promise<R | null>;
  /** How many rows satisfy a filter. */
  count(filter?: Filter): Promise<number>;
  /** Counts, sums, averages, minima and maxima, by group. */
  aggregate(
    filter: Filter | undefined,
    wanted: { groupBy?: GroupBy | GroupBy[]; sum?: string | string[]; avg?: string | string[]; min?: string | string[]; max?: string | string[] },
  ): Promise<Group[]>;
  sum(column: string, filter?: Filter): Promise<any>;
  avg(column: string, filter?: Filter): Promise<any>;
  min(column: string, filter?: Filter): Promise<any>;
  max(column: string, filter?: Filter): Promise<any>;
  /** Returns the new row with its id. */
  insert(values: V): Promise<R>;
  /** Inserts at most 500 rows, all of them or none; returns them with their ids. */
  insertMany(rows: V[]): Promise<R[]>;
  /** Returns the number of rows. The rows must be unchanged at the commit. With `all`, the filter may match every row. */
  updateMany(filter: Filter, changes: Partial<V>, options?: { all?: boolean }): Promise<number>;
  /** Returns the number of rows. With `all`, the filter may match every row. */
  deleteMany(filter: Filter, options?: { all?: boolean }): Promise<number>;
  /**
   * Changes the row that has the same id, or the same values in the columns of `on`, or inserts one. `on` names columns that
   * are unique together; documents are matched by their id.
   */
  upsert(values: V, options?: { on?: string | string[] }): Promise<R>;
  /** Fails with code `not_found` if there is no such row. */
  update(id: string | number, changes: Partial<V>): Promise<null>;
  /** Adds to the values that the row has at the commit. */
  increment(id: string | number, amounts: { [column: string]: number | string }): Promise<null>;
  /** Returns whether the row existed. */
  delete(id: string | number): Promise<boolean>;
}

/** An exposed table, or a collection of documents under any other name. */
interface Db {
  readonly [set: string]: Rows<any, any>;
}

declare const db: Db;
