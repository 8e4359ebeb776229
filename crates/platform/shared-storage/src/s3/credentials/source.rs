//! Where a profile says that its credentials come from.

use forebay_types::{Error, Result};
use object_store::aws::AwsCredential;

use super::machine::Hand;
use super::profile::{Environment, Profile, sso_session};

/// Profiles that lead to each other at most.
const DEPTH_MAX: usize = 8;
/// Name of a session of a role where the profile has none.
const SESSION_NAME: &str = "forebay";

/// Where credentials come from.
pub(super) enum Source {
    /// They stand there.
    Keys(AwsCredential),
    /// A command prints them.
    Process(String),
    /// AWS IAM Identity Center hands them out to who has logged in.
    Sso(Sso),
    /// STS hands them out to who may take the role.
    Role(Role, Box<Source>),
    /// The variables of this process.
    Environment,
    /// What the machine hands out.
    Machine(Hand),
}

/// An account and a role of IAM Identity Center.
pub(super) struct Sso {
    pub(super) account: String,
    pub(super) role: String,
    pub(super) region: String,
    /// By what name the token of the login is kept: the session's, or the portal's URL.
    pub(super) login: String,
}

/// A role to take.
pub(super) struct Role {
    pub(super) arn: String,
    pub(super) session_name: String,
    pub(super) external_id: Option<String>,
}

impl Source {
    /// What a profile says; none where it says nothing of credentials.
    pub(super) fn of(env: &Environment, profile: &Profile) -> Result<Option<Self>> {
        Self::at(env, profile, 0)
    }

    fn at(env: &Environment, profile: &Profile, depth: usize) -> Result<Option<Self>> {
        let wrong = |what: &str| Error::denied(format!("profile {:?}: {what}", profile.name));
        if depth > DEPTH_MAX {
            return Err(wrong("source_profile leads round in a circle"));
        }
        let keys = || Some(Self::Keys(keys(profile)?));
        if let Some(arn) = profile.get("role_arn") {
            if profile.get("mfa_serial").is_some() {
                return Err(wrong(
                    "mfa_serial asks a person for a code each time: log in by `aws sso login`, or name a profile with its own keys",
                ));
            }
            let of = match (profile.get("source_profile"), profile.get("credential_source").as_deref()) {
                // One that names itself means its own keys.
                (Some(name), _) if name == profile.name => {
                    keys().ok_or_else(|| wrong("it is its own source_profile and has no keys"))?
                }
                (Some(name), _) => {
                    let named = Profile::find_in(env, Some(&name))?.ok_or_else(|| wrong("its source_profile is not there"))?;
                    Self::at(env, &named, depth + 1)?
                        .ok_or_else(|| wrong(&format!("its source_profile {name:?} has no credentials")))?
                }
                (None, Some("Environment")) => Self::Environment,
                (None, Some("Ec2InstanceMetadata")) => Self::Machine(Hand::Instance),
                (None, Some("EcsContainer")) => Self::Machine(Hand::Container),
                (None, Some(other)) => return Err(wrong(&format!("credential_source = {other} is none that there is"))),
                (None, None) => return Err(wrong("role_arn needs source_profile or credential_source beside it")),
            };
            let session_name = profile.get("role_session_name").unwrap_or_else(|| SESSION_NAME.to_string());
            let role = Role { arn, session_name, external_id: profile.get("external_id") };
            return Ok(Some(Self::Role(role, Box::new(of))));
        }
        if let Some(keys) = keys() {
            return Ok(Some(keys));
        }
        if profile.get("sso_session").is_some() || profile.get("sso_start_url").is_some() {
            return sso(env, profile).map(|sso| Some(Self::Sso(sso))).map_err(|what| wrong(&what));
        }
        Ok(profile.get("credential_process").map(Self::Process))
    }

    /// For messages; holds no secret.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Keys(_) => "its keys".into(),
            Self::Process(_) => "credential_process".into(),
            Self::Sso(sso) => format!("the login to account {} as {}", sso.account, sso.role),
            Self::Role(role, of) => format!("{} by {}", role.arn, of.describe()),
            Self::Environment => "the environment".into(),
            Self::Machine(Hand::Container) => "the container".into(),
            Self::Machine(Hand::Any | Hand::Instance) => "the instance's metadata".into(),
        }
    }
}

fn keys(profile: &Profile) -> Option<AwsCredential> {
    let (key_id, secret_key) = (profile.get("aws_access_key_id")?, profile.get("aws_secret_access_key")?);
    Some(AwsCredential { key_id, secret_key, token: profile.get("aws_session_token") })
}

fn sso(env: &Environment, profile: &Profile) -> std::result::Result<Sso, String> {
    let (login, region, from) = match profile.get("sso_session") {
        Some(name) => {
            let session =
                sso_session(env, &name).ok_or_else(|| format!("there is no [sso-session {name}]: run `aws configure sso`"))?;
            (name.clone(), session.get("sso_region").cloned(), format!("[sso-session {name}]"))
        }
        None => (profile.get("sso_start_url").unwrap_or_default(), profile.get("sso_region"), "it".to_string()),
    };
    let missing = |key: &str, from: &str| format!("{from} has no {key}: run `aws configure sso`");
    Ok(Sso {
        account: profile.get("sso_account_id").ok_or_else(|| missing("sso_account_id", "it"))?,
        role: profile.get("sso_role_name").ok_or_else(|| missing("sso_role_name", "it"))?,
        region: region.ok_or_else(|| missing("sso_region", &from))?,
        login,
    })
}
