import type { MailWords } from './en.ts';

export const fr: MailWords = {
  stop: 'Ne plus recevoir ces e-mails, ou les recevoir à nouveau',
  ignore: 'Si vous n’attendiez pas cet e-mail, ne faites rien.',

  newSubmission: 'Nouvelle réponse : {form}',
  received: 'Reçue le {time}.',
  receivedNth: 'Reçue le {time}. C’était la n° {n} de cette journée.',
  noAnswers: 'Quelqu’un a envoyé le formulaire sans aucune réponse.',
  leftOut: 'Les réponses sont trop longues pour un e-mail, il en manque donc une partie.',
  wholeForOwner: 'Le lien ci-dessous les montre en entier.',
  wholeForOthers:
    'Le propriétaire du formulaire les voit en entier, tout comme une clé d’API de son projet : GET {url}',
  filesUntil: 'Les liens vers les fichiers fonctionnent jusqu’au {day}, pour quiconque les possède.',
  filesLater: 'Les fichiers pourront être ouverts une fois votre adresse confirmée.',
  open: 'Ouvrir cette réponse',
  submission: 'Réponse {id}',
  whyOwner: 'Vous recevez cet e-mail parce que le formulaire « {form} » est à vous.',
  whyUnconfirmed:
    'Vous recevez cet e-mail parce que le formulaire « {form} » a été publié avec cette adresse comme celle de son propriétaire. Vous ne l’avez pas encore confirmé.',
  whyNamed:
    'Vous recevez cet e-mail parce que le formulaire « {form} » nomme cette adresse comme destinataire et que vous l’avez confirmé.',
  whyAdded:
    'Vous recevez cet e-mail parce que le propriétaire du formulaire « {form} » a ajouté cette adresse comme destinataire et que vous l’avez confirmé.',
  whyOperator:
    'Vous recevez cet e-mail parce que cette adresse est celle du service et que quelqu’un a essayé son formulaire de démonstration.',
  whyAnswered:
    'Vous recevez cet e-mail une seule fois, parce que votre adresse a été donnée dans le formulaire « {form} ».',

  confirmTitle: 'Confirmez votre formulaire',
  confirmText: 'Le formulaire « {form} » est publié, et cette adresse doit recevoir ses réponses.',
  confirmWebhookText:
    'Le formulaire « {form} » est publié, et cette adresse doit en être propriétaire. Ses réponses sont envoyées à un programme (un webhook), pas par e-mail.',
  confirmButton: 'Confirmer cette adresse',
  page: 'Sa page, à partager',
  recipientTitle: 'Confirmez que vous voulez recevoir des réponses',
  recipientText:
    'Le propriétaire du formulaire « {form} » souhaite que ses réponses soient envoyées à cette adresse.',
  recipientButton: 'Recevoir ces e-mails',
  takeOverTitle: 'Reprendre un formulaire',
  takeOverText: 'Cette adresse a été désignée comme nouvelle propriétaire du formulaire « {form} ».',
  takeOverButton: 'Devenir propriétaire',
  whyAsked: 'Envoyé à {email} parce que quelqu’un a donné cette adresse au service de formulaires.',

  noticeSubject: 'Des réponses attendent que vous confirmiez cette adresse',
  noticeTitle: 'Des réponses vous attendent',
  noticeText: 'Réponses au formulaire « {form} » qui vous attendent : {n}.',
  noticeTextNameless: 'Réponses à un formulaire qui vous attendent : {n}.',
  noticeMore:
    'Quelqu’un a créé le formulaire sans clé d’API et a désigné cette adresse comme propriétaire. Les réponses seront envoyées une fois que vous l’aurez confirmé.',

  signInTitle: 'Connexion à vos formulaires',
  signInText:
    'Ce lien ouvre la page des formulaires de cette adresse. Il fonctionne une fois, pendant 15 minutes.',
  signInIgnore:
    'Si vous ne l’avez pas demandé, ne faites rien : sans le lien, personne ne peut se connecter.',
  signInButton: 'Se connecter',
  whySignIn: 'Envoyé à {email} parce que quelqu’un a demandé un lien de connexion avec cette adresse.',

  webhookTitle: 'Un webhook a été désactivé',
  webhookText:
    'Plus rien n’est envoyé à {host} (webhook {id}). Il échoue depuis cinq jours sans un seul succès.',
  webhookMore:
    'Les réponses sont conservées. Quand le destinataire fonctionnera à nouveau, réactivez le webhook et renvoyez ce qui a échoué.',
  whyWebhook: 'Vous recevez cet e-mail parce qu’un formulaire que ce webhook dessert est à vous.',
};
