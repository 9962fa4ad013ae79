import { element } from './element.ts';

/*
 * Puts a form in the place of its own tag: <script src="…/embed.js" data-form="form_…"></script>, or a session of one
 * by data-session. With data-popup="Words" there is a button with these words, which opens the form in a dialog.
 * data-query="source=shop" fills in fields by id, data-title names the frame, data-close the button that closes the
 * dialog. With data-transparent the form has no background of its own.
 *
 * The frame is as high as the form. The form's `embedOrigins` must name the page's origin.
 */
{
  const script = document.currentScript;
  const id = script?.getAttribute('data-session') ?? script?.getAttribute('data-form');
  if (script instanceof HTMLScriptElement && id) {
    const address = new URL(`f/${encodeURIComponent(id)}`, script.src);
    address.search = script.getAttribute('data-query') ?? '';
    const frame = element('iframe', { title: script.getAttribute('data-title') ?? 'Form' });
    if (script.hasAttribute('data-transparent')) frame.name = 'form-transparent';
    frame.style.cssText = 'display:block;width:100%;height:20rem;border:0';
    addEventListener('message', ({ source, origin, data }) => {
      if (source !== frame.contentWindow || origin !== address.origin) return;
      if (data?.type === 'form-height' && data.height > 0) frame.style.height = `${Number(data.height)}px`;
      if (data?.type === 'form-escape' && dialog.open) dialog.close();
    });
    const dialog = element('dialog');
    const words = script.getAttribute('data-popup');
    if (words === null) {
      frame.src = address.href;
      script.after(frame);
    } else {
      script.after(popup(words || 'Open form', script.getAttribute('data-close') ?? 'Close'));
    }

    /** Any rule of the site's own for buttons or for the class wins over it. */
    function popupStyle(): CSSStyleSheet {
      const style = new CSSStyleSheet();
      style.replaceSync(
        ':where(.form-popup-button){padding:.6875rem 1.5rem;border:0;border-radius:.625rem;background:#2f4fd0;color:#fff;font:inherit;font-weight:600;cursor:pointer}',
      );
      return style;
    }

    /** The form is loaded when the dialog is first opened, and stays as it was when it is closed. */
    function popup(openWords: string, closeWords: string): HTMLElement {
      const className = 'form-popup-button';
      const button = element('button', { type: 'button', textContent: openWords, className });
      document.adoptedStyleSheets.push(popupStyle());
      dialog.setAttribute('aria-label', frame.title);
      dialog.style.cssText =
        'box-sizing:border-box;width:min(42rem,100vw - 1rem);max-width:none;max-height:calc(100dvh - 1rem);padding:0;border:0;background:none;overflow:auto';
      const close = element('button', { type: 'button', textContent: '×' });
      close.setAttribute('aria-label', closeWords);
      close.style.cssText =
        'display:block;position:sticky;top:0;margin:0 0 .5rem auto;width:2.5rem;height:2.5rem;border:0;border-radius:50%;background:#17191f;color:#fff;font:1.5rem/1 sans-serif;cursor:pointer;z-index:1';
      close.onclick = () => dialog.close();
      frame.style.borderRadius = '1rem';
      dialog.append(close, frame);
      button.onclick = () => {
        if (!frame.hasAttribute('src')) frame.src = address.href;
        if (!dialog.isConnected) document.body.append(dialog);
        dialog.showModal();
      };
      return button;
    }
  }
}
