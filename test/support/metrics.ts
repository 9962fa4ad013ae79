/** The value of a metric in the text that Prometheus reads: of the first series that has these labels. */
export function metricIn(text: string, name: string, labels: object = {}): number | undefined {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const line = text
    .split('\n')
    .find((each) => /^[^{ ]+/.exec(each)?.[0] === name && wanted.every((part) => each.includes(part)));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1));
}
