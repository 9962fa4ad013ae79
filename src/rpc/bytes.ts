/**
 * Bytes that are there already, as the stream that Connect's handlers take and give.
 *
 * Connect's `createAsyncIterable` does the same, but is compiled for engines without async generators,
 * which cost some percent of a call.
 */
export async function* inPieces(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

/** All bytes of a stream. */
export async function wholeOf(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
}
