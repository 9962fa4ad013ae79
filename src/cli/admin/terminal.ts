/** Where commands run, and what they write to. */
export type Terminal = {
  env: NodeJS.ProcessEnv;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Writes a line of the result. */
  print: (line: string) => void;
  /** Writes a line beside it. */
  note: (line: string) => void;
};
