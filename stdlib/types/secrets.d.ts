// secrets: what stands for a secret in the headers of a request. The host puts the value in where the request leaves.

interface Secrets {
  /** `Basic …` for an authorization header, of a user's name and a secret. */
  basic(user: string, name: string): string;
  /** The value itself; only with the grant `secret:NAME:plain`. It is kept out of logs, results and errors where it is recognised. */
  read(name: string): Promise<string>;
  /** `fetch(url, { headers: { authorization: "Bearer " + secrets.API_KEY } })` */
  readonly [name: string]: any;
}

declare const secrets: Secrets;
