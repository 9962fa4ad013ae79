/**
 * Returns a function that calls `make` once for each object and returns that result from then on, as long as the
 * object lives. For objects that never change: versions of forms, their fields, and messages, which no side of
 * a call may change.
 */
export function memoize<Given extends object, Made>(make: (given: Given) => Made): (given: Given) => Made {
  const made = new WeakMap<Given, { value: Made }>();
  return (given) => {
    const known = made.get(given);
    if (known !== undefined) return known.value;
    const value = make(given);
    made.set(given, { value });
    return value;
  };
}
