/*
 * Puts a form in the place of its own tag: <script src="…/embed.js" data-session="sess_…"></script>
 *
 * The frame is as high as the form. The form's `embedOrigins` must name the page's origin.
 */
{
  const script = document.currentScript;
  const session = script?.getAttribute('data-session');
  if (script instanceof HTMLScriptElement && session) {
    const frame = document.createElement('iframe');
    frame.src = new URL(`f/${encodeURIComponent(session)}`, script.src).href;
    frame.title = script.getAttribute('data-title') ?? 'Form';
    frame.style.cssText = 'display:block;width:100%;height:20rem;border:0';
    addEventListener('message', ({ source, origin, data }) => {
      if (source !== frame.contentWindow || origin !== new URL(script.src).origin) return;
      if (data?.type === 'form-height' && data.height > 0) frame.style.height = `${Number(data.height)}px`;
    });
    script.after(frame);
  }
}
