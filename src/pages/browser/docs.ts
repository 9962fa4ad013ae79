/**
 * Shows the API description by Swagger UI. Calls that people try go to where the page was opened, so that its policy
 * allows them and the commands that it shows work from there, whatever BASE_URL is.
 */
declare const SwaggerUIBundle: (options: object) => void;

{
  const main = document.querySelector<HTMLElement>('#reference');
  if (main !== null) {
    const root = new URL(main.dataset.root ?? './', location.href).href;
    const reply = await fetch(new URL('openapi.json', root));
    const described = await reply.json();
    described.servers = [{ url: root.replace(/\/$/, '') }];
    // The system's choice: Swagger UI has a dark theme, but asks for a class.
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
    dark.addEventListener('change', follow);
    follow();
    SwaggerUIBundle({
      spec: described,
      domNode: main,
      deepLinking: true,
      defaultModelsExpandDepth: -1,
      displayRequestDuration: true,
      plugins: [accessible],
      validatorUrl: null,
    });
  }
}

/** Corrects what assistive technology stumbles over: links within buttons, a missing landmark and a missing heading. */
function accessible() {
  return {
    wrapComponents: {
      DeepLink:
        () =>
        ({ text }: { text: unknown }) =>
          text,
      InfoContainer:
        (original: unknown, { React }: System) =>
        (props: object) =>
          React.createElement('section', { 'aria-label': 'About' }, React.createElement(original, props)),
      operations:
        (original: unknown, { React }: System) =>
        (props: object) => [
          React.createElement('h2', { key: 'title', className: 'routes' }, 'Routes'),
          React.createElement(original, { key: 'routes', ...props }),
        ],
    },
  };
}

type System = { React: { createElement(type: unknown, props: object, ...children: unknown[]): unknown } };

export {};
