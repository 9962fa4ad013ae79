/**
 * What a model that needs a person's consent calls next, by the results of its calls so far, or what it says at last. It
 * prints the link of a question, for the person.
 */
export function nextStep(results) {
  const latest = results.at(-1);
  if (latest === undefined) {
    const question = { id: 'go', label: 'May I deploy 4.2?', type: 'boolean', required: true };
    return { name: 'ask_person', input: { questions: [question] } };
  }
  const { session_id, url, status, answers } = factsIn(latest);
  if (status === 'open') {
    console.log(url);
    return { name: 'wait_for_session', input: { session_id } };
  }
  return { text: answers === undefined ? status : `${status} ${JSON.stringify(answers)}` };
}

/** Clients give models the result of a tool in different shapes; all have the text that is JSON. */
function factsIn(result) {
  if (typeof result === 'string') {
    try {
      return factsIn(JSON.parse(result));
    } catch {
      return undefined;
    }
  }
  if (typeof result !== 'object' || result === null) return undefined;
  if ('session_id' in result) return result;
  return Object.values(result)
    .map(factsIn)
    .find((facts) => facts !== undefined);
}

/** The endpoint, and what goes along with each call. */
export const url = `${process.env.URL}/mcp`;
export const headers = { authorization: `Bearer ${process.env.KEY}` };
