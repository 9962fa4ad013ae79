import type { Request } from 'express';

/**
 * Whether nobody is shown what a request reads: it asks for the headers alone, a browser fetches the page ahead, or a
 * program looks at a link that somebody was sent.
 */
export function isPreview({ method, headers }: Pick<Request, 'method' | 'headers'>): boolean {
  if (method === 'HEAD') return true;
  if (method !== 'GET') return false;
  const purposes = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].map((name) =>
    String(headers[name] ?? ''),
  );
  return (
    purposes.some((purpose) => /prefetch|preview/i.test(purpose)) ||
    previewer.test(headers['user-agent'] ?? '')
  );
}

/**
 * What programs that preview links call themselves: most say "bot", "preview" or the like (Slackbot, Twitterbot,
 * Discordbot, TelegramBot, LinkedInBot, MicrosoftPreview, SkypeUriPreview), the others are named. Signal says
 * WhatsApp; Apple's Messages says facebookexternalhit. Cubot makes telephones.
 */
const previewer =
  /(?<!\bcu)bot\b|crawler|spider|preview|facebookexternalhit|facebookcatalog|meta-external|whatsapp\/|slack-imgproxy|embedly|iframely|vkshare|kakaotalk-scrap|line-poker|mastodon\/|synapse|outbrain|flipboardproxy|google-inspectiontool/i;
