import { element } from './element.ts';

/** The side of a QR code as a picture: enough for print. */
const PIXELS = 1024;

/** Shows the buttons that copy what stands before them; browsers let only secure pages do so. */
for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]')) {
  if (!window.isSecureContext) break;
  button.hidden = false;
  button.onclick = async () => {
    await navigator.clipboard.writeText(button.previousElementSibling?.textContent ?? '');
    button.textContent = button.getAttribute('data-copied');
  };
}

/** Shows the button that saves the QR code as a picture of pixels, for programs that take no other. */
for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-png]')) {
  const code = document.querySelector<HTMLImageElement>('img.qr');
  if (code === null) break;
  button.hidden = false;
  button.onclick = () => {
    const canvas = element('canvas', { width: PIXELS, height: PIXELS });
    canvas.getContext('2d')?.drawImage(code, 0, 0, PIXELS, PIXELS);
    const download = button.getAttribute('data-png') ?? '';
    element('a', { download, href: canvas.toDataURL('image/png') }).click();
  };
}
