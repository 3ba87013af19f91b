// kv: JSON values under keys of the tenant; with `own`, under keys of this schedule.

interface Own {
  own?: boolean;
}

interface Kv {
  /** The value of a key, or null. */
  get(key: string, options?: Own): Promise<any>;
  /** Stores a value under a key. */
  set(key: string, value: any, options?: Own & { ttlSeconds?: number }): Promise<null>;
  /**
   * Compare and set: stores `value` if the current value is `expected` (null: no value), and returns whether it did. The value null
   * removes the key. If several runs swap the same value, one succeeds; the others are repeated and read the new value.
   */
  swap(key: string, expected: any, value: any, options?: Own & { ttlSeconds?: number }): Promise<boolean>;
  /** Removes a key. */
  delete(key: string, options?: Own): Promise<null>;
  /** Adds to the number under a key (0 if there is none), based on its value at the commit. */
  add(key: string, amount?: number, options?: Own): Promise<number>;
  /** Keys and values, ordered by key. */
  list(options?: Own & { prefix?: string; after?: string; limit?: number }): Promise<{ key: string; value: any }[]>;
}

declare const kv: Kv;
