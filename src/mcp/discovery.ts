/** The MCP server card (SEP-2127): what the server is, and where. */
export function describeServer({ baseUrl, version }: Described): object {
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name: `${reverseHostOf(baseUrl)}/${NAME}`,
    title: TITLE,
    description: ABOUT,
    version,
    remotes: [
      {
        type: 'streamable-http',
        url: `${baseUrl}/mcp`,
        headers: [
          {
            name: 'Authorization',
            description: 'Bearer and an API key of the service; its scopes decide which tools there are.',
            isRequired: true,
            isSecret: true,
          },
        ],
      },
    ],
  };
}

/** The catalog of a host with this one server. */
export function describeCatalog({ baseUrl }: Described): object {
  return {
    specVersion: 'draft',
    entries: [
      {
        identifier: `urn:air:${new URL(baseUrl).hostname}:${NAME}`,
        displayName: TITLE,
        type: 'application/mcp-server-card+json',
        url: `${baseUrl}/mcp/server-card`,
      },
    ],
  };
}

/** What a model that finds the service needs to know (llmstxt.org). */
export function describeForModels({ baseUrl }: Described): string {
  return `# ${TITLE}

> ${ABOUT}

An agent makes a form, fills in what it knows, hands the rest to a person by a link, and gets the answers with who gave
each. Every call needs an API key of the service in \`Authorization: Bearer <key>\`, but for making and activating
forms and for submitting answers by REST.

## Interfaces

- [MCP](${baseUrl}/mcp): streamable HTTP. Tools for forms, sessions and submissions; \`ask_person\` hands over to a person.
- [MCP server card](${baseUrl}/mcp/server-card)
- [OpenAPI](${baseUrl}/openapi.json): the REST interface
- [Protocol buffers](${baseUrl}/descriptor.binpb): the RPCs, as a descriptor set

## In short

1. \`create_form\`, then \`activate_form\` with the owner's e-mail address. Fields have \`answeredBy\`: anyone, human, agent.
2. \`get_form\` tells what is asked. \`submit_answers\` submits what you know.
3. \`ask_person\` opens a session with your answers as prefill and returns a link for the person.
4. \`wait_for_session\` waits for the person and returns the answers.
`;
}

/** `forms.example.com` is `com.example.forms`. */
function reverseHostOf(url: string): string {
  return new URL(url).hostname.replace(/[[\]]/g, '').replaceAll(':', '-').split('.').reverse().join('.');
}

const NAME = 'headless-form-service';
const TITLE = 'Headless form service';
const ABOUT = 'Makes forms, and collects validated answers from people and agents.';

/** The public address of the service, without a slash at the end, and the version of the software. */
type Described = { baseUrl: string; version: string };
