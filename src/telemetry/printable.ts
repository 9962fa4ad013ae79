/**
 * A line that a terminal shows as it is: `\u001b` stands for ESC, and so for every character that moves the cursor,
 * ends the line, changes the direction of text or can't be seen. JSON with these escapes means the same.
 */
export function printable(line: string): string {
  return line.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
