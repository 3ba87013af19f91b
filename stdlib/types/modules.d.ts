// Standard modules: import { parse } from "csv".

declare module "csv" {
  interface ParseOptions {
    /** One character; "," if left out. */
    separator?: string;
    /** Objects by the names of the first row. */
    header?: boolean;
  }
  /** Rows of a text (RFC 4180) without blank lines. Throws a SyntaxError that names the row. */
  export function parse(text: string, options: ParseOptions & { header: true }): Record<string, string>[];
  export function parse(text: string, options?: ParseOptions): string[][];
  interface StringifyOptions {
    separator?: string;
    /** Names of the columns of objects; those of all objects if left out. */
    columns?: string[];
    /** "text" puts an apostrophe before text that a spreadsheet would calculate. */
    formulas?: "keep" | "text";
  }
  /** Text of rows, with CRLF after each. */
  export function stringify(rows: Iterable<unknown[] | Record<string, unknown>>, options?: StringifyOptions): string;
}

declare module "decimal" {
  /** decimal.js with a hundred digits, bankers' rounding and no exponents in its texts. */
  import Original from "decimal.js";
  export class Decimal extends Original {}
  export function decimal(value: Original.Value | bigint): Decimal;
}

declare module "html" {
  interface Html {
    toString(): string;
    toJSON(): string;
  }
  /** Template that escapes each value; arrays are joined, null, undefined and false are empty. Put attributes in quotes. */
  export function html(strings: TemplateStringsArray, ...values: unknown[]): Html;
  export function escape(value: unknown): string;
  /** HTML that is put in as it is. */
  export function raw(text: string): Html;
  /** Table of objects, with the columns of the first one or those named. */
  export function table(rows: Record<string, unknown>[], columns?: string[]): Html;
}

declare module "markdown" {
  /** Markdown as HTML, by marked; HTML in the text is escaped, and links lead to http, https and mailto only. */
  export function render(text: string): string;
}

declare module "stats" {
  export function sum(values: Iterable<number>): number;
  export function mean(values: Iterable<number>): number;
  export function median(values: Iterable<number>): number;
  /** Value below which the share `at` (0 to 1) lies. */
  export function quantile(values: Iterable<number>, at: number): number;
  export function variance(values: Iterable<number>): number;
  export function stdev(values: Iterable<number>): number;
  /** Line of least squares through points [x, y]. */
  export function linear(points: Iterable<[number, number]>): { slope: number; intercept: number; r2: number };
}

declare module "testing" {
  /** A response that is given to a request of the script in place of the network's. */
  interface RecordedFetch {
    url: string;
    /** "GET" if left out. */
    method?: string;
    /** Only for requests with exactly this body. */
    requestBody?: string;
    /** 200 if left out. */
    status?: number;
    headers?: Record<string, string>;
    /** Body of the response: JSON, text or base64. */
    json?: unknown;
    body?: string;
    base64?: string;
  }
  interface TestOptions {
    /** Name of the script; that of the test's file if left out. */
    script?: string;
    /** Name of a schedule of schedules.toml, to be run in place of a script. */
    schedule?: string;
    /** Instant at which the case begins, such as "2027-01-04T08:00:00Z". */
    now?: string;
    /** How long time passes, such as "7d": the schedule's slots and requested later runs are run. One run if left out. */
    for?: string;
    input?: unknown;
    /** Documents by collection; those of [dev] are not there. */
    seed?: Record<string, Record<string, unknown>[]>;
    kv?: Record<string, unknown>;
    fetches?: RecordedFetch[];
    secrets?: Record<string, string>;
    grants?: string[];
    people?: string[];
    /** Number of runs, one after the other; 1 if left out. */
    times?: number;
    /** Outcome that all runs must have; "ok" if left out. */
    outcome?: string;
  }
  interface TestRun {
    /** Outcome, result and error of the last run. */
    outcome: string;
    result: any;
    error: { name: string; message: string; line: number | null } | null;
    logs: { level: string; text: string }[];
    mails: { to: string[]; subject: string; text?: string; html?: string; [more: string]: any }[];
    /** Documents by collection, ordered by id. */
    rows: Record<string, any[]>;
    kv: Record<string, any>;
    fetches: { method: string; url: string; body: string; status: number }[];
    runs: { slot: string | null; outcome: string | null; result: any }[];
    /** Later runs that were requested and wait, in the order of their instants. */
    later: { script: string; at: string; input: any; key: string | null }[];
    /** The next three slots of the schedule. */
    next: string[];
  }
  /** One case of a file NAME.test.js or NAME.test.ts, which `lodger test` runs. */
  export function test(name: string, options: TestOptions, check: (run: TestRun) => void | Promise<void>): void;
  export function test(name: string, check: (run: TestRun) => void | Promise<void>): void;
  interface Expectation {
    toBe(wanted: unknown): void;
    toEqual(wanted: unknown): void;
    toMatchObject(wanted: object): void;
    toContain(wanted: unknown): void;
    toMatch(wanted: RegExp | string): void;
    toHaveLength(wanted: number): void;
  }
  /** What a value should be: a failed expectation ends the case and shows both. */
  export function expect(actual: unknown): Expectation & { not: Expectation };
  /** For `lodger test`: the cases of the file, or the verdict on one run. */
  export function answer(input: unknown): Promise<unknown>;
}
