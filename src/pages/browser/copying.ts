/** Shows the buttons that copy what stands before them; browsers let only secure pages do so. */
for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]')) {
  if (!window.isSecureContext) break;
  button.hidden = false;
  button.onclick = async () => {
    await navigator.clipboard.writeText(button.previousElementSibling?.textContent ?? '');
    button.textContent = button.getAttribute('data-copied');
  };
}

export {};
